#warning "a plugin has no longjmp: return false, or an error of the contract"
#include_next <setjmp.h>
