#!/bin/sh
# What VS Code runs: the adapter, by CITCAT where that is set, else by PATH.
exec "${CITCAT:-citcat}" dap "$@"
