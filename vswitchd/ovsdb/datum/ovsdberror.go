package datum

import "fmt"

// Error is an <error> of RFC 7047 section 3.1.
type Error struct {
	// Tag is the kind of the error in RFC 7047, such as "constraint violation".
	Tag string
	// Details has the found and the expected value.
	Details string
}

// Error implements error.
func (e *Error) Error() string { return e.Tag + ": " + e.Details }

// JSON is the error for clients.
func (e *Error) JSON() any { return map[string]any{"error": e.Tag, "details": e.Details} }

// Errorf makes an error of a kind.
func Errorf(tag, format string, args ...any) *Error { return &Error{tag, fmt.Sprintf(format, args...)} }

// Syntaxf makes a syntax error.
func Syntaxf(format string, args ...any) *Error { return Errorf("syntax error", format, args...) }

// Violationf makes a constraint violation.
func Violationf(format string, args ...any) *Error {
	return Errorf("constraint violation", format, args...)
}
