#warning "a plugin has no processes: use hermes_process_process_run, with the permission `process`"
#include_next <spawn.h>
