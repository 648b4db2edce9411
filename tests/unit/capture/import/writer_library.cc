// The C writer, compiled into the tests as it is: it has to be valid C++ as well.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include "capture/writer/citcat_capture.c"
