package runtime

// Handle names a resource of the host. It is 0 once the resource was given away or dropped.
type Handle struct {
	value int32
}

// MakeHandle keeps a handle that the host has given.
func MakeHandle(value int32) *Handle {
	if value == 0 {
		panic("the host gave no handle")
	}
	return &Handle{value}
}

// Use returns the handle, and panics if the resource is gone.
func (h *Handle) Use() int32 {
	if h.value == 0 {
		panic("the resource was given away or dropped")
	}
	return h.value
}

// Take gives the handle away, and panics if the resource is gone.
func (h *Handle) Take() int32 {
	value := h.Use()
	h.value = 0
	return value
}

// TakeOrNil gives the handle away; 0 if the resource is gone.
func (h *Handle) TakeOrNil() int32 {
	value := h.value
	h.value = 0
	return value
}

// Set keeps another handle, and panics if there is one.
func (h *Handle) Set(value int32) {
	if h.value != 0 {
		panic("there is a resource already")
	}
	h.value = value
}
