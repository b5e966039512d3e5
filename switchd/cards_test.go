package switchd

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/switchd/local"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestCardsAreDriven: if the settings ask for it, a card is polled and has no copies, or is
// refused. A veth is unaffected.
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
		{`{}`, "card0", "native, copy", 0, ""},
		{`{"busyPoll": "20us", "busyPollBudget": 64}`, "card0", "native, copy", 20, ""},
		{`{"zeroCopy": true}`, "card0", "", 0, "zero-copy: "},
		{`{"zeroCopy": true, "busyPoll": "20us"}`, "veth0", "native, copy", 0, ""},
	} {
		var c local.AFXDP
		if err := json.Unmarshal([]byte(s.keys), &c); err != nil {
			t.Fatal(err)
		}
		open := &Opener{Cards: CardsOf(c), Log: slog.New(slog.DiscardHandler)}
		open.Room(1)
		node.Do(t, func() {
			p, err := open.Link(s.link, door.DriverAFXDP)
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
			if err := errors.Join(err, open.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantDriven fails if a port is in another mode, or its socket polls differently.
func wantDriven(t *testing.T, p ports.Port, mode string, micros int) {
	t.Helper()
	polls, err := unix.GetsockoptInt(p.FD(), unix.SOL_SOCKET, unix.SO_BUSY_POLL)
	if p.Info().Mode != mode || polls != micros || err != nil {
		t.Errorf("%s: mode %q, polls for %d µs, %v; want %q and %d", p.Name(), p.Info().Mode, polls, err, mode, micros)
	}
}

// TestTunnelDrivers: AF_XDP is on the link with the Node's address, or on the one in the spec. If
// it is not possible, auto uses the kernel and afxdp is an error. With offload, auto uses the
// kernel, too.
func TestTunnelDrivers(t *testing.T) {
	node, far := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "eth0", far, "eth1")
	node.AddAddress(t, "eth0", "192.168.77.102/24")
	if out, err := node.Command("ip", "link", "add", "br0", "type", "bridge").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	node.Do(t, func() {
		offload, err := OpenOffload()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { offload.Close() })
		for driver, want := range map[string]string{door.DriverKernel: "underlay", door.DriverAFXDP: "uplink", door.DriverAuto: "underlay"} {
			open := &Opener{Log: slog.New(slog.DiscardHandler), Offload: offload}
			open.Room(1)
			p, err := open.Tunnel(underlay.Config{Local: netip.MustParseAddr("192.168.77.102")}, driver, "")
			if err != nil {
				t.Fatal(err)
			}
			if i := p.Info(); i.Driver != want || (i.OffloadLink != 0) != (want == "underlay") {
				t.Errorf("with offload, %s is %+v", driver, i)
			}
			if err := errors.Join(p.Close(), open.Close()); err != nil {
				t.Error(err)
			}
		}
	})
	here, nowhere := netip.MustParseAddr("192.168.77.102"), netip.MustParseAddr("192.168.77.109")
	for _, s := range []struct {
		setting, uplink string
		local           netip.Addr
		driver, fault   string
	}{
		{door.DriverKernel, "", here, "underlay", ""},
		{door.DriverAFXDP, "", here, "uplink", ""},
		{door.DriverAuto, "", here, "uplink", ""},
		{door.DriverAuto, "br0", here, "underlay", ""},
		{door.DriverAFXDP, "br0", here, "", "uplink br0: it is a bridge"},
		{door.DriverAFXDP, "", nowhere, "", "no link has the address 192.168.77.109"},
	} {
		open := &Opener{Log: slog.New(slog.DiscardHandler)}
		open.Room(1)
		node.Do(t, func() {
			p, err := open.Tunnel(underlay.Config{Local: s.local}, s.setting, s.uplink)
			switch {
			case s.fault != "" && (err == nil || !strings.Contains(err.Error(), s.fault)):
				t.Errorf("%+v: %v", s, err)
			case s.fault == "" && err != nil:
				t.Errorf("%+v: %v", s, err)
			case err == nil && p.Info().Driver != s.driver:
				t.Errorf("%+v: it is %+v", s, p.Info())
			}
			if err == nil {
				err = p.Close()
			} else {
				err = nil
			}
			if err := errors.Join(err, open.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}
