package vswitchd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/vswitchd/bridge"
	"golang.org/x/sys/unix"
)

// TestReachable: a tunnel receives at addresses of its own family, which other hosts may reach.
// They are bounded.
func TestReachable(t *testing.T) {
	var links []net.Addr
	add := func(prefixes ...string) {
		for _, p := range prefixes {
			ip, network, err := net.ParseCIDR(p)
			if err != nil {
				t.Fatal(err)
			}
			links = append(links, &net.IPNet{IP: ip, Mask: network.Mask})
		}
	}
	add("127.0.0.1/8", "192.168.77.210/32", "::1/128", "169.254.0.253/32", "10.10.1.1/24", "fe80::1/64", "fd00::7/64", "10.10.1.1/32")
	for own, want := range map[string]string{"10.10.1.1": "[10.10.1.1 192.168.77.210]", "fd00::7": "[fd00::7]"} {
		here, left := reachableAddresses(netip.MustParseAddr(own), links)
		if got := fmt.Sprint(here); got != want || left != 0 {
			t.Errorf("%s: %s and %d more, want %s", own, got, left, want)
		}
	}
	for i := range 2 * maxTunnelAddresses {
		add(fmt.Sprintf("10.96.0.%d/32", i))
	}
	here, left := reachableAddresses(netip.MustParseAddr("10.10.1.1"), links)
	if len(here) != maxTunnelAddresses || left != maxTunnelAddresses+2 {
		t.Errorf("%d and %d more", len(here), left)
	}
}

// TestTunnelFollowsAddresses: a tunnel without options:local_ip receives at an address that the
// Node gets later, and no longer at one that the Node loses. The next switch does the same.
// With options:local_ip it receives there alone. A process of its own has a network namespace.
func TestTunnelFollowsAddresses(t *testing.T) {
	const marker = "ANTRAIL_TEST_OF_TUNNEL_ADDRESSES"
	if os.Getenv(marker) == "" {
		ns := nstest.New(t)
		ns.SetUp(t, "lo")
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), marker+"=1")
		var out []byte
		var err error
		ns.Do(t, func() { out, err = cmd.CombinedOutput() })
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	run("addr", "add", "192.0.2.7/24", "dev", "lo")
	run("route", "add", "default", "dev", "lo", "src", "192.0.2.7")
	sw := switchd.Process{Socket: filepath.Join(t.TempDir(), "switch.sock"), Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	sw.Settings.Workers = 1
	start := func() (kill func()) {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		p := sw
		go func() { over <- p.Run(ctx) }()
		client := door.Dial(sw.Socket)
		nstest.Until(t, "the switch to answer", func() bool { _, err := client.Info(ctx); return err == nil })
		return func() {
			cancel()
			if err := <-over; err != nil {
				t.Error(err)
			}
		}
	}
	kill := start()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	ctx, cancel := context.WithCancelCause(t.Context())
	c := controller{Process: &Process{Switch: sw.Socket}, client: door.Dial(sw.Socket), log: log, begun: make(chan struct{}, 1)}
	c.bridges = &bridges{client: c.client, changes: &changeRecorder{Client: c.client}, runDir: t.TempDir(), log: log, ctx: ctx, ports: map[string]bridge.Port{}, receivers: receivers{client: c.client, log: log}}
	over := make(chan struct{})
	go c.runControl(ctx, cancel, over)
	defer func() { cancel(nil); <-over; c.bridges.awaitDisconnected() }()
	<-c.begun
	tunnel := bridge.Port{Name: "tun0", Type: "geneve", Number: 1, Tag: -1, Options: map[string]string{"remote_ip": "flow", "key": "flow"}}
	for _, err := range []error{
		c.bridges.followAddresses(ctx),
		c.bridges.AddBridge(bridge.Bridge{Name: "br0", DatapathID: 1, FailMode: failSecure}),
		c.bridges.AddPort("br0", tunnel),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	received := func(at ...string) {
		t.Helper()
		nstest.Until(t, fmt.Sprint("to receive at ", at), func() bool {
			for _, a := range []string{"192.0.2.7", "192.0.2.210", "192.0.2.211"} {
				if receives(t, a) != slices.Contains(at, a) {
					return false
				}
			}
			return true
		})
	}
	received("192.0.2.7")
	run("addr", "add", "192.0.2.210/32", "dev", "lo")
	run("addr", "add", "192.0.2.211/32", "dev", "lo")
	received("192.0.2.7", "192.0.2.210", "192.0.2.211")
	run("addr", "del", "192.0.2.211/32", "dev", "lo")
	received("192.0.2.7", "192.0.2.210")
	kill()
	received()
	kill = start()
	defer func() { kill() }()
	received("192.0.2.7", "192.0.2.210")
	tunnel.Options = map[string]string{"remote_ip": "flow", "key": "flow", "local_ip": "192.0.2.7"}
	if err := c.bridges.ChangePort("br0", tunnel); err != nil {
		t.Fatal(err)
	}
	received("192.0.2.7")
}

// receives reports whether somebody receives Geneve at an address. It need not be there.
func receives(t *testing.T, at string) bool {
	lc := net.ListenConfig{Control: freebind}
	ln, err := lc.ListenPacket(t.Context(), "udp4", at+":6081")
	if err != nil {
		return true
	}
	ln.Close()
	return false
}

// freebind lets a socket have an address that the Node has not.
func freebind(_, _ string, c syscall.RawConn) error {
	var err error
	outer := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1) })
	return errors.Join(outer, err)
}
