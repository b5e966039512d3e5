package pods

import (
	"errors"
	"io"
	"testing"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
)

// TestOpenPairs checks that a contender that the options leave out is not opened, and that one that
// the machine lacks is named.
func TestOpenPairs(t *testing.T) {
	r := &rig.Rig{Options: rig.Options{Contenders: []string{"OFFLOAD", "bridge"}}, Progress: io.Discard}
	opened := false
	pairs, absent, err := openPairs(r, []opener{
		{"direct veth", func() (*pair, error) { t.Error("was opened"); return nil, errors.New("no") }},
		{"Linux bridge", func() (*pair, error) { opened = true; return &pair{name: "Linux bridge"}, nil }},
		{"offload", func() (*pair, error) {
			return nil, report.MissingError{Name: "offload", Why: errors.New("no kernel")}
		}},
	})
	if err != nil || !opened || len(pairs) != 1 || len(absent) != 1 {
		t.Errorf("%d pairs, absent %q: %v", len(pairs), absent, err)
	}
}
