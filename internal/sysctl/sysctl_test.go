package sysctl

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
)

func TestPlace(t *testing.T) {
	there, away := t.TempDir()+"/", "/no/such/dir/"
	const forward = "/proc/sys/net/ipv4/ip_forward"
	for _, s := range []struct{ file, mounted, want string }{
		{forward, there, there + "ipv4/ip_forward"},
		{forward, away, forward},
		{"/proc/sys/kernel/domainname", there, "/proc/sys/kernel/domainname"},
	} {
		if got := place(s.file, s.mounted); got != s.want {
			t.Errorf("%s with %s: %s, want %s", s.file, s.mounted, got, s.want)
		}
	}
}

// TestWriterDecides: a namespace's own setting is written, wherever the directory
// comes from.
func TestWriterDecides(t *testing.T) {
	const forward = "/proc/sys/net/ipv4/ip_forward"
	a, b := nstest.New(t), nstest.New(t)
	a.Do(t, func() {
		if err := Write(forward, "1"); err != nil {
			t.Fatal(err)
		}
	})
	for ns, want := range map[*nstest.Namespace]string{a: "1", b: "0"} {
		ns.Do(t, func() {
			if got, err := Read(forward); err != nil || got != want {
				t.Errorf("%s: %q, %v, want %s", ns.Name, got, err, want)
			}
		})
	}
	if err := Write("/proc/sys/net/no/such", "1"); err == nil || !strings.Contains(err.Error(), "no/such") {
		t.Errorf("error %v", err)
	}
}
