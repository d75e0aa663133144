// Package types has the types that the bindings use for WIT's own ones.
package types

// Unit is the value of a result without one.
type Unit struct{}

// Tuple2 is a pair.
type Tuple2[T0, T1 any] struct {
	F0 T0
	F1 T1
}

// Larger tuples, for interfaces of your own.
type Tuple3[T0, T1, T2 any] struct {
	F0 T0
	F1 T1
	F2 T2
}
type Tuple4[T0, T1, T2, T3 any] struct {
	F0 T0
	F1 T1
	F2 T2
	F3 T3
}
type Tuple5[T0, T1, T2, T3, T4 any] struct {
	F0 T0
	F1 T1
	F2 T2
	F3 T3
	F4 T4
}
type Tuple6[T0, T1, T2, T3, T4, T5 any] struct {
	F0 T0
	F1 T1
	F2 T2
	F3 T3
	F4 T4
	F5 T5
}

const (
	OptionNone uint8 = 0
	OptionSome uint8 = 1
	ResultOk   uint8 = 0
	ResultErr  uint8 = 1
)

// Option is a value that may be absent.
type Option[T any] struct {
	some  bool
	value T
}

// Some is a value.
func Some[T any](value T) Option[T] { return Option[T]{true, value} }

// None is no value.
func None[T any]() Option[T] { return Option[T]{} }

// Tag is OptionNone or OptionSome.
func (o Option[T]) Tag() uint8 {
	if o.some {
		return OptionSome
	}
	return OptionNone
}

// IsSome tells whether there is a value.
func (o Option[T]) IsSome() bool { return o.some }

// Some returns the value, and panics without one.
func (o Option[T]) Some() T {
	if !o.some {
		panic("an option without a value")
	}
	return o.value
}

// SomeOr returns the value, or another one.
func (o Option[T]) SomeOr(other T) T {
	if o.some {
		return o.value
	}
	return other
}

// Result is a value or an error of the contract.
type Result[T, E any] struct {
	failed bool
	value  T
	err    E
}

// Ok is a value.
func Ok[T, E any](value T) Result[T, E] { return Result[T, E]{value: value} }

// Err is an error.
func Err[T, E any](err E) Result[T, E] { return Result[T, E]{failed: true, err: err} }

// Tag is ResultOk or ResultErr.
func (r Result[T, E]) Tag() uint8 {
	if r.failed {
		return ResultErr
	}
	return ResultOk
}

// IsErr tells whether there is an error.
func (r Result[T, E]) IsErr() bool { return r.failed }

// Ok returns the value, and panics if there is an error.
func (r Result[T, E]) Ok() T {
	if r.failed {
		panic("a result that is an error")
	}
	return r.value
}

// Err returns the error, and panics without one.
func (r Result[T, E]) Err() E {
	if !r.failed {
		panic("a result without an error")
	}
	return r.err
}
