package pipeline

import (
	"testing"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
)

// TestInstallation installs entries into antrail's switch, and checks that they are there and then gone.
func TestInstallation(t *testing.T) {
	p, err := workload.ExampleProgram("two-nodes/node-a")
	if err != nil {
		t.Fatal(err)
	}
	n, err := newInstallTest(p.Names)
	if err != nil || len(n.bundle) != bundleSize || len(n.single) != singleSize {
		t.Fatalf("%d and %d lines, %v", len(n.bundle), len(n.single), err)
	}
	n.single = n.single[:3]
	w, err := openAntrail(p, testbed.SwitchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	before := len(w.program.sw.Flows())
	if _, err := w.installEntries(t.Context(), n.bundle, true); err != nil {
		t.Fatal(err)
	}
	if got := len(w.program.sw.Flows()) - before; got != bundleSize {
		t.Errorf("%d entries were installed, want %d", got, bundleSize)
	}
	list, err := n.measureInstall(t.Context(), w) // the bundle's once more
	if err != nil || len(list) != 4 {
		t.Errorf("%v, %v", list, err)
	}
	for _, r := range list {
		if !(r.Value > 0) {
			t.Errorf("%s is %v", r.Name, r.Value)
		}
	}
	if got := len(w.program.sw.Flows()); got != before {
		t.Errorf("%d entries are left, want %d", got, before)
	}
}
