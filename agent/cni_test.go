package agent

import (
	"testing"

	"github.com/antrail/antrail/cni"
)

// TestCallsKeepHandOverWaiting: what changes the record of pods is held up while
// another agent takes over, and holds that up until it has ended. So is DEL, which
// does not wait for objects.
func TestCallsKeepHandOverWaiting(t *testing.T) {
	c := &plugs{pluginCalls: newPluginCalls()}
	for _, v := range []cni.Verb{cni.Del, cni.Add, cni.Check, cni.GC} {
		done, err := c.admit(t.Context(), v)
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		if c.calls.TryLock() {
			t.Fatalf("%s: another agent may take the record over meanwhile", v)
		}
		done()
		if !c.calls.TryLock() {
			t.Fatalf("%s holds the hand-over up after its end", v)
		}
		c.calls.Unlock()
		if v == cni.Del { // which came before any object was read
			c.open()
		}
	}
	c.calls.Lock() // an agent is about to take over
	done, err := c.admit(t.Context(), cni.Status)
	if err != nil {
		t.Fatal(err)
	}
	done()
}
