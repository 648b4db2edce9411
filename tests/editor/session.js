// A session with `citcat dap` by npm's client of the debug adapter protocol, which is not ours:
//   node session.js PROGRAM FOLDER
// FOLDER has watched.citcat, and where there is an assembler watched.s and watched.elf
// (tests/unit/debugger/watched_program.h), and the client's package.

const assert = require('assert');
const fs = require('fs');
const path = require('path');

const [program, folder] = process.argv.slice(2);
const { DebugClient } = require(path.join(folder, 'node_modules', '@vscode/debugadapter-testsupport'));

const recording = path.join(folder, 'watched.citcat');
const source = path.join(folder, 'watched.s');
const elf = path.join(folder, 'watched.elf');

async function pc(client) {
  const answer = await client.stackTraceRequest({ threadId: 1, levels: 1 });
  return answer.body.stackFrames[0].instructionPointerReference;
}

async function stopped(client, request) {
  const stop = client.waitForEvent('stopped');
  await request;
  return (await stop).body;
}

async function begin(launch) {
  const client = new DebugClient(program, 'dap', 'citcat');
  client.defaultTimeout = 60000;
  await client.start();
  const entry = client.waitForEvent('stopped');
  await Promise.all([client.configurationSequence(), client.launch({ recording, unchecked: true, ...launch })]);
  assert.strictEqual((await entry).body.reason, 'entry');
  return client;
}

async function stepsBothWays() {
  const client = await begin({});
  const places = [];
  for (let i = 0; i < 20; ++i) {
    places.push(await pc(client));
    await stopped(client, client.stepInRequest({ threadId: 1, granularity: 'instruction' }));
  }
  for (let i = 0; i < 20; ++i) {
    await stopped(client, client.stepBackRequest({ threadId: 1, granularity: 'instruction' }));
    assert.strictEqual(await pc(client), places.pop());
  }
  const scopes = await client.scopesRequest({ frameId: 1 });
  const registers = scopes.body.scopes.find((s) => s.name === 'Registers');
  const variables = await client.variablesRequest({ variablesReference: registers.variablesReference });
  assert(variables.body.variables.some((v) => v.name === 'eip'));
  await client.stop();
}

async function findsWhoStored() {
  const client = await begin({ at: 'end' });
  const info = await client.dataBreakpointInfoRequest({ name: '0x600', asAddress: true, bytes: 4 });
  await client.setDataBreakpointsRequest({ breakpoints: [{ dataId: info.body.dataId, accessType: 'write' }] });
  const stop = await stopped(client, client.reverseContinueRequest({ threadId: 1 }));
  assert.strictEqual(stop.reason, 'data breakpoint');
  assert.strictEqual(await pc(client), '0x9000');
  await client.stop();
}

async function stopsAtLines() {
  if (!fs.existsSync(elf)) return console.log('skip: no program with lines');
  const client = await begin({ symbols: [elf] });
  const line = fs.readFileSync(source, 'utf8').split('\n').indexOf('movl 0x600, %eax') + 1;
  const set = await client.setBreakpointsRequest({ source: { path: source }, breakpoints: [{ line }] });
  if (!set.body.breakpoints[0].verified) return console.log('skip: ' + set.body.breakpoints[0].message);
  const stop = await stopped(client, client.continueRequest({ threadId: 1 }));
  assert.strictEqual(stop.reason, 'breakpoint');
  const frames = await client.stackTraceRequest({ threadId: 1 });
  assert.strictEqual(frames.body.stackFrames[0].line, line);
  await stopped(client, client.nextRequest({ threadId: 1 }));
  await stopped(client, client.stepBackRequest({ threadId: 1 }));
  assert.strictEqual((await client.stackTraceRequest({ threadId: 1 })).body.stackFrames[0].line, line);
  await client.stop();
}

(async () => {
  for (const test of [stepsBothWays, findsWhoStored, stopsAtLines]) {
    await test();
    console.log('ok: ' + test.name);
  }
  process.exit(0);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
