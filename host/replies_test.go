package host

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// replyState is the state that leads an Egress' answers into the switch.
func replyState(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, command := range []string{"ip rule", "ip -6 rule", "ip route show table all", "ip -6 route show table all"} {
		words := strings.Fields(command)
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "141") {
				all.WriteString(line)
			}
		}
	}
	return all.String()
}

// TestEgressReplies: rules and routes of both families are made, restored after another
// program's removal, and taken over from a killed agent. They go with Down, with Clean, and
// with an agent of another mode.
func TestEgressReplies(t *testing.T) {
	onUnderlay(t).Do(t, func() {
		c := config()
		c.EgressReplies = true
		c.Record = filepath.Join(t.TempDir(), "record")
		c.Files = []string{filepath.Join(t.TempDir(), "gone")}
		h := mustUp(t, c)
		made := replyState(t)
		if strings.Count(made, "fwmark 0x40000000/0x40000000 lookup 141") != 2 ||
			!strings.Contains(made, "default via 169.254.0.251 dev "+gateway+" table 141") ||
			!strings.Contains(made, "default via fc01::aabb:ccdd:eefd dev "+gateway+" table 141") {
			t.Fatalf("made:\n%s", made)
		}
		for _, command := range []string{"ip rule del table 141", "ip -6 rule del table 141", "ip route flush table 141", "ip -6 route flush table 141"} {
			words := strings.Fields(command)
			if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", command, err, out)
			}
			if did, err := h.Reconcile(); err != nil || len(did) != 1 || !strings.Contains(did[0], "141") {
				t.Errorf("%s: put back %q, %v", command, did, err)
			}
		}
		mustUp(t, c) // the first one was killed
		if now := replyState(t); now != made {
			t.Errorf("taken over:\n%s\nit was\n%s", now, made)
		}
		var told []string
		if err := Clean(c.Record, func(what string) { told = append(told, what) }); err != nil || !slices.Contains(told, "removed routing rule for table 141") {
			t.Errorf("told %q, %v", told, err)
		}
		if now := replyState(t); strings.Contains(now, "lookup") {
			t.Errorf("left:\n%s", now)
		}
		c.Record = ""
		mustUp(t, c) // then a kill
		c.EgressReplies = false
		mustUp(t, c)
		if now := replyState(t); strings.Contains(now, "lookup") {
			t.Errorf("of an agent of another mode:\n%s", now)
		}
		c.EgressReplies = true
		h = mustUp(t, c)
		if err := h.Down(); err != nil || replyState(t) != "" {
			t.Errorf("after Down: %v\n%s", err, replyState(t))
		}
	})
}

func mustUp(t *testing.T, c Config) *Host {
	t.Helper()
	h, err := Up(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
