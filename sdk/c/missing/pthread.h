#warning "a plugin has no threads: do the work in the call; `prepare` and `sync-turn` run in the background"
#include_next <pthread.h>
