package agent

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/host/preflight"
	"github.com/antrail/antrail/internal/nstest"
)

// TestEcho: an address of this Node answers, one that nobody has does not.
func TestEcho(t *testing.T) {
	n := nstest.New(t)
	n.SetUp(t, "lo")
	n.Sysctl(t, "net/ipv6/conf/lo/disable_ipv6", "0")
	n.AddAddress(t, "lo", "fd00:77::1/128")
	n.Do(t, func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, a := range []string{"127.0.0.1", "fd00:77::1"} {
			if took, err := echo(ctx, netip.MustParseAddr(a)); err != nil || took <= 0 {
				t.Errorf("%s: %v, %v", a, took, err)
			}
		}
		if _, err := echo(ctx, netip.MustParseAddr("192.0.2.1")); err == nil {
			t.Error("an address without a route answers")
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := echo(ended, netip.MustParseAddr("127.0.0.1")); err == nil {
			t.Error("an answer after the end")
		}
	})
}

// TestShortWay: a Node is named that the tunnel takes shorter packets to than Pods send,
// unless it is reached without the tunnel.
func TestShortWay(t *testing.T) {
	a, _ := loadedAgent(t, "")
	short := func(netip.Addr) int { return 1350 }
	want := "the way to 192.168.77.103 takes packets of 1350 bytes through the tunnel, and Pods send up to 1450"
	if got := a.pathLines(short); len(got) != 1 || got[0].State != preflight.Warn || got[0].Check != "Node node-b" || got[0].Found != want {
		t.Errorf("%+v", got)
	}
	if got := a.pathLines(func(netip.Addr) int { return 1450 }); got != nil {
		t.Errorf("all fits: %+v", got)
	}
	a.config.TransportCIDRs = []netip.Prefix{netip.MustParsePrefix("192.168.77.0/24")}
	if got := a.pathLines(short); got != nil {
		t.Errorf("without the tunnel: %+v", got)
	}
}

// TestCheckNamesWhatIsWrong: an agent that is not ready, with an object that is not in
// force, and a peer and pods that do not answer.
func TestCheckNamesWhatIsWrong(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("sockets of ICMP need root")
	}
	a, _ := loadedAgent(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody is waited for
	text := &strings.Builder{}
	all := a.check(ctx)
	if err := preflight.Write(text, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"ok    pipeline", "fail  ports        the ports are being opened", "ok    workers",
		"fail  Node node-b  its gateway 10.10.1.1: no answer", "fail  Node node-b  its gateway fd00:10:10:1::1: no answer",
		"warn  pods         0 of 3 that were probed answer the Node; not default/client-a, default/db-a, default/web-a",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if w := preflight.Worst(all); w != preflight.Fail {
		t.Errorf("the worst is %s", w)
	}
}
