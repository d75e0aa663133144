// Package runtime gives the bindings memory that Go's collector keeps until a call is over.
package runtime

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
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

// The goroutines at the beginning of a call.
var begun int

func init() {
	if arena[0] != 'h' {
		panic("the adapter of WASI has overwritten the program's memory")
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(slack)
}

// Enter begins a call of the contract.
func Enter() {
	begun = runtime.NumGoroutine()
	collect()
}

// Leave ends the plugin's part of a call. Nothing runs between two calls, so goroutines that are ready run first. One that still waits may be
// a worker for later calls, so the call does not fail.
func Leave() {
	for range 100 {
		if runtime.NumGoroutine() <= begun {
			return
		}
		runtime.Gosched()
	}
	os.Stderr.WriteString("warning: a goroutine of this call still waits, and does not run before the next call: wait for it before you return\n")
}

// Text makes a text well-formed for the host: each run of bytes that are not UTF-8 becomes U+FFFD.
func Text(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func collect() {
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
	collect()
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
