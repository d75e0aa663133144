#warning "a plugin has no sockets: use hermes_request and hermes_send, with the permission `http`"
#include_next <netdb.h>
