package parse_test

import (
	"testing"

	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/flow/wire"
	"github.com/antrail/antrail/internal/wiretest"
)

// TestEntriesCross: every entry and action that has a text arrives unchanged.
func TestEntriesCross(t *testing.T) {
	g := newGenerator(t, 12)
	for i := range 3000 {
		line := g.entry(i)
		e, err := parse.Entry(line, portNames())
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		wiretest.Same(t, wire.Entry{Entry: e})
		for _, a := range e.Actions {
			wiretest.Same(t, wire.Action{Action: a})
		}
	}
}
