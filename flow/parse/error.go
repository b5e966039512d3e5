package parse

import (
	"fmt"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Errors are the errors of a program's files in order, at most maxErrors. More is
// the number of further wrong lines.
type Errors struct {
	List []*flow.Error
	More int
}

// maxErrors is how many errors one Errors lists.
const maxErrors = 20

// Error is one line for each error.
func (e *Errors) Error() string {
	var lines []string
	for _, x := range e.List {
		lines = append(lines, x.Error())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single errors for errors.As.
func (e *Errors) Unwrap() []error {
	list := make([]error, len(e.List))
	for i, x := range e.List {
		list[i] = x
	}
	return list
}

func (e *Errors) add(x *flow.Error) {
	if len(e.List) < maxErrors {
		e.List = append(e.List, x)
	} else {
		e.More++
	}
}
