package demo

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/lab"
	"github.com/vishvananda/netlink"
)

// TestKilledUplink: while the agent is killed that takes tunnel packets off the
// Node's card, the Node loses not one of its own packets, and then the card is as
// it was. The next agent takes the card again.
func TestKilledUplink(t *testing.T) {
	l := upWith(t, lab.Options{TunnelDriver: config.DriverAFXDP})
	w := &world{lab: l, addresses: addresses(l, false)}
	if _, err := w.ping("client-a", "client-b", waitAtMost); err != nil {
		t.Fatal(err)
	}
	wantProgram(t, l, true)
	ns, err := l.Namespace("node-a")
	if err != nil {
		t.Fatal(err)
	}
	ping := exec.Command("ping", "-q", "-i", "0.02", "-c", "100", "-W", "2", w.addresses["node-b"].String())
	var out strings.Builder
	ping.Stdout = &out
	if err := ns.Do(ping.Start); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	killBoth(t, l, "node-a")
	if err := ping.Wait(); err != nil || !strings.Contains(out.String(), "100 received") {
		t.Errorf("%v:\n%s", err, out.String())
	}
	wantProgram(t, l, false)
	if err := l.RestartAgent(t.Context(), "node-a", antrail); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ping("client-a", "client-b", waitAtMost); err != nil {
		t.Error(err)
	}
	wantProgram(t, l, true)
}

// wantProgram checks whether node-a's card has an XDP program.
func wantProgram(t *testing.T, l *lab.Lab, want bool) {
	t.Helper()
	ns, err := l.Namespace("node-a")
	if err != nil {
		t.Fatal(err)
	}
	has := !want
	for end := time.Now().Add(time.Minute); has != want && time.Now().Before(end); time.Sleep(time.Millisecond) {
		err := ns.Do(func() error {
			link, err := netlink.LinkByName("eth0")
			if err == nil {
				has = link.Attrs().Xdp != nil && link.Attrs().Xdp.Attached
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if has != want {
		t.Errorf("eth0 has an XDP program: %v, want %v", has, want)
	}
}
