// The component begins here. The plugin itself is in the folder `plugin`, whose functions the bindings call.
package main

import _ "hermes/bindings/exports/wit_exports"

func main() {}
