package control

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

// TestPodEnds finds Pods of this Node and of another one, with their Services.
func TestPodEnds(t *testing.T) {
	_, r := seedOffline(t)
	for name, want := range map[string]string{
		"web-7975":   "port 37, [10.10.0.24], [10.96.76.15 10.105.31.235 192.168.77.150 192.168.77.151 192.168.77.200]",
		"web-remote": "port 0, [10.10.1.6], [10.96.76.15 10.105.31.235 192.168.77.150 192.168.77.151 192.168.77.200]",
		"client-6":   "port 36, [10.10.0.26], []",
	} {
		ends, err := r.PodEnds(cluster.Name{Namespace: "default", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("port %d, %v, %v", ends.Port, ends.IPs, ends.Services); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if _, err := r.PodEnds(cluster.Name{Namespace: "default", Name: "nobody"}); err == nil || !strings.Contains(err.Error(), "no Pod default/nobody") {
		t.Errorf("an unknown Pod: %v", err)
	}
}

// TestOriginsOf finds the objects of every entry that has any.
func TestOriginsOf(t *testing.T) {
	program, r := seedOffline(t)
	for _, e := range program.Entries {
		origins := r.OriginsOf(e)
		if len(origins) == 0 {
			t.Errorf("nothing wants %v", e)
		}
	}
}
