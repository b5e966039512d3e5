package flow

// Value is a field's value or mask: up to 128 bits, right aligned (the
// register value 5 is Value{Lo: 5}).
type Value struct{ Hi, Lo uint64 }

// And is the bitwise and.
func (v Value) And(w Value) Value { return Value{v.Hi & w.Hi, v.Lo & w.Lo} }

// Or is the bitwise or.
func (v Value) Or(w Value) Value { return Value{v.Hi | w.Hi, v.Lo | w.Lo} }

// AndNot clears w's bits in v.
func (v Value) AndNot(w Value) Value { return Value{v.Hi &^ w.Hi, v.Lo &^ w.Lo} }

// IsZero reports whether no bit is set.
func (v Value) IsZero() bool { return v.Hi|v.Lo == 0 }

// Shl shifts left by n bits, 0 to 128.
func (v Value) Shl(n int) Value {
	switch {
	case n == 0:
		return v
	case n >= 128:
		return Value{}
	case n >= 64:
		return Value{v.Lo << (n - 64), 0}
	}
	return Value{v.Hi<<n | v.Lo>>(64-n), v.Lo << n}
}

// Shr shifts right by n bits, 0 to 128.
func (v Value) Shr(n int) Value {
	switch {
	case n == 0:
		return v
	case n >= 128:
		return Value{}
	case n >= 64:
		return Value{0, v.Hi >> (n - 64)}
	}
	return Value{v.Hi >> n, v.Lo>>n | v.Hi<<(64-n)}
}

// Ones is the value with the lowest n bits set, 0 to 128.
func Ones(n int) Value {
	switch {
	case n >= 128:
		return Value{^uint64(0), ^uint64(0)}
	case n > 64:
		return Value{1<<(n-64) - 1, ^uint64(0)}
	case n == 64:
		return Value{0, ^uint64(0)}
	}
	return Value{0, 1<<n - 1}
}
