# Parts of the program that a build may leave out (CITCAT_PARTS). Where one is missing, a stand-in
# (`parts/without_<part>.cc` of a component) takes the place of its sources: what would need it says so.

set(CITCAT_PARTS "all" CACHE STRING
  "Parts beside the core (import, replay, verify, dump, info, explain ...): all, none, or a list of fast;analyses;mdl;export;plugin;report;debugger;view;monitor;api;sql")
set(citcat_all_parts fast analyses mdl export plugin report debugger view monitor api sql)
# Parts that stand on the tools of `analyses`.
set(citcat_parts_upon_analyses mdl plugin report sql)
# Parts that stand on the debugger, and on the page of view.
set(citcat_parts_upon_debugger view)
set(citcat_parts_upon_view report)

if(CITCAT_PARTS STREQUAL "all")
  set(CITCAT_BUILT_PARTS ${citcat_all_parts})
elseif(CITCAT_PARTS STREQUAL "none")
  set(CITCAT_BUILT_PARTS)
else()
  set(CITCAT_BUILT_PARTS ${CITCAT_PARTS})
endif()
foreach(part IN LISTS CITCAT_BUILT_PARTS)
  if(NOT part IN_LIST citcat_all_parts)
    list(JOIN citcat_all_parts ", " known)
    message(FATAL_ERROR "CITCAT_PARTS: expected all, none, or some of ${known}; found ${part}")
  endif()
  if(part IN_LIST citcat_parts_upon_analyses AND NOT "analyses" IN_LIST CITCAT_BUILT_PARTS)
    message(FATAL_ERROR "CITCAT_PARTS: ${part} needs analyses")
  endif()
  if(part IN_LIST citcat_parts_upon_debugger AND NOT "debugger" IN_LIST CITCAT_BUILT_PARTS)
    message(FATAL_ERROR "CITCAT_PARTS: ${part} needs debugger")
  endif()
  if(part IN_LIST citcat_parts_upon_view AND NOT "view" IN_LIST CITCAT_BUILT_PARTS)
    message(FATAL_ERROR "CITCAT_PARTS: ${part} needs view")
  endif()
endforeach()
set(CITCAT_WHOLE ON)
foreach(part IN LISTS citcat_all_parts)
  if(NOT part IN_LIST CITCAT_BUILT_PARTS)
    set(CITCAT_WHOLE OFF)
  endif()
endforeach()

# The sources of each part within the components that it shares with others, as regular expressions.
# Its handlers are what a compiler spends most on; an 8088 or 80286 never runs by them.
set(citcat_part_fast "/replay/machine/fast/handlers[a-z_]*\\.cc$")
set(citcat_part_analyses "/tools/analyses/" "/tools/processors/" "/cli/machine/machine_analysis\\.cc$" "/cli/commands/cmd_(analyze|merge)\\.cc$" "/cli/demo/")
set(citcat_part_mdl "/tools/mdl/" "/cli/commands/cmd_session\\.cc$" "/cli/analysis/metric_arguments\\.cc$")
set(citcat_part_export "/tools/export/(call_paths|profile_exporters|coverage_exporters)\\.cc$"
  "/tools/export/(callgrind|champsim|din|drmemtrace|folded|perfetto|pprof|simpoint|speedscope|tenet)_.*\\.cc$")
set(citcat_part_plugin "/tools/plugin/")
set(citcat_part_report "/tools/report/" "/cli/commands/cmd_report\\.cc$" "/cli/report/report_(data|page)\\.cc$")
set(citcat_part_debugger "/debugger/" "/cli/commands/cmd_(debug|dap)\\.cc$")
set(citcat_part_view "/view/model/" "/view/server/" "/view/exported/" "/cli/view/(recording_view|viewed_recording)\\.cc$")
set(citcat_part_monitor
  "/cli/commands/cmd_record\\.cc$" "/cli/record/")

set(citcat_part_sql "/cli/(sql|compare)/")

# Sources in a part's folder that others need as well.
set(citcat_kept_sources "/(tools/analyses/instruction_table|cli/record/side_file)\\.cc$")

# citcat_choose_parts(VARIABLE): leaves of a list of sources those of the parts that are built, and the
# stand-ins for the others.
function(citcat_choose_parts variable)
  set(sources ${${variable}})
  set(kept ${sources})
  list(FILTER kept INCLUDE REGEX "${citcat_kept_sources}")
  foreach(part IN LISTS citcat_all_parts)
    if(part IN_LIST CITCAT_BUILT_PARTS)
      list(FILTER sources EXCLUDE REGEX "/parts/without_${part}\\.cc$")
    else()
      foreach(pattern IN LISTS citcat_part_${part})
        list(FILTER sources EXCLUDE REGEX "${pattern}")
      endforeach()
    endif()
  endforeach()
  list(APPEND sources ${kept})
  list(REMOVE_DUPLICATES sources)
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()
