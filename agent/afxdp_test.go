package agent

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/ports"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestCardsAreDriven: a card is polled and has no copies when that is asked for, or is
// refused; a veth is driven as ever.
func TestCardsAreDriven(t *testing.T) {
	node, pod := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "veth0", pod, "eth0")
	node.Do(t, func() {
		if err := netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "card0"}, Mode: netlink.TUNTAP_MODE_TAP}); err != nil {
			t.Fatal(err)
		}
	})
	for _, s := range []struct {
		keys, link, mode string
		polls            int // microseconds
		fault            string
	}{
		{"{}", "card0", "native, copy", 0, ""},
		{"{busyPoll: 20us, busyPollBudget: 64}", "card0", "native, copy", 20, ""},
		{"{zeroCopy: true}", "card0", "", 0, "zero-copy: "},
		{"{zeroCopy: true, busyPoll: 20us}", "veth0", "native, copy", 0, ""},
	} {
		c, err := ParseConfig([]byte("afxdp: " + s.keys + "\n" + goodConfig))
		if err != nil {
			t.Fatal(err)
		}
		a := &Agent{config: c, log: slog.New(slog.DiscardHandler), told: make(chan struct{})}
		a.open = a.opener()
		a.open.Room(1)
		node.Do(t, func() {
			p, err := a.openPod(Port{Link: s.link, Driver: DriverAFXDP})
			switch {
			case s.fault != "" && (err == nil || !strings.Contains(err.Error(), s.fault)):
				t.Errorf("%s on %s: %v, want %q", s.keys, s.link, err, s.fault)
			case s.fault == "" && err != nil:
				t.Errorf("%s on %s: %v", s.keys, s.link, err)
			}
			if err == nil {
				wantDriven(t, p, s.mode, s.polls)
				err = p.Close()
			} else {
				err = nil
			}
			if err := errors.Join(err, a.open.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantDriven fails when a port is in another mode, or its socket polls otherwise.
func wantDriven(t *testing.T, p ports.Port, mode string, micros int) {
	t.Helper()
	polls, err := unix.GetsockoptInt(p.FD(), unix.SOL_SOCKET, unix.SO_BUSY_POLL)
	if p.Info().Mode != mode || polls != micros || err != nil {
		t.Errorf("%s: mode %q, polls for %d µs, %v; want %q and %d", p.Name(), p.Info().Mode, polls, err, mode, micros)
	}
}
