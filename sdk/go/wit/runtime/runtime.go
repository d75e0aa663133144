// Package runtime gives the bindings memory that Go's collector keeps until a call is over.
package runtime

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"unsafe"
)

// The host calls `cabi_realloc` at moments when a component may not call it back. Go's collector asks for the time, so it may not begin
// there. It is off, and runs between the calls of the contract when enough was allocated; in a call that allocates very much it also
// runs by itself.
const (
	// Bytes that are allocated between two collections.
	between = 8 << 20
	// Bytes beyond twice what is in use, from which a collection begins by itself.
	slack = 40 << 20
)

var allocated = []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
var collected uint64

func init() {
	if arena[0] != 'h' {
		panic("the adapter of WASI has overwritten the program's memory")
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(slack)
}

// Enter begins a call of the contract.
func Enter() {
	metrics.Read(allocated)
	if allocated[0].Value.Uint64()-collected < between {
		return
	}
	runtime.GC()
	metrics.Read(allocated)
	collected = allocated[0].Value.Uint64()
	debug.SetMemoryLimit(int64(slack + 2*allocated[1].Value.Uint64()))
}

// What the host has written into memory of `cabi_realloc`.
var given runtime.Pinner

// What pointers to no bytes point to.
var nothing uint64

// Memory for the adapter of WASI, which runs before Go can allocate. `hermes plugins component` finds it by its first bytes.
var arena = [160 << 10]byte{'h', 'e', 'r', 'm', 'e', 's', ' ', 'a', 'd', 'a', 'p', 't', 'e', 'r', ' ', 'm', 'e', 'm', 'o', 'r', 'y', 0xff}

// Allocate returns memory that stays where it is until the pinner lets it go.
func Allocate(pinner *runtime.Pinner, size, align uintptr) unsafe.Pointer {
	Enter()
	return keep(pinner, size, align)
}

func keep(pinner *runtime.Pinner, size, align uintptr) unsafe.Pointer {
	if size == 0 {
		return unsafe.Pointer(&nothing)
	}
	var pointer unsafe.Pointer
	switch align {
	case 1:
		pointer = unsafe.Pointer(unsafe.SliceData(make([]uint8, size)))
	case 2:
		pointer = unsafe.Pointer(unsafe.SliceData(make([]uint16, (size+1)/2)))
	case 4:
		pointer = unsafe.Pointer(unsafe.SliceData(make([]uint32, (size+3)/4)))
	default:
		pointer = unsafe.Pointer(unsafe.SliceData(make([]uint64, (size+7)/8)))
	}
	pinner.Pin(pointer)
	return pointer
}

// Unpin lets go of what the host has written: the arguments of an export, or the result of an import.
func Unpin() {
	given.Unpin()
}

//go:wasmexport cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldSize, align, newSize uint32) unsafe.Pointer {
	if newSize <= oldSize {
		return old
	}
	new := keep(&given, uintptr(newSize), uintptr(align))
	if oldSize > 0 {
		copy(unsafe.Slice((*byte)(new), newSize), unsafe.Slice((*byte)(old), oldSize))
	}
	return new
}
