package podports

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/switchd"
	"github.com/vishvananda/netlink"
)

// recorder is a switch that notes what happens to its ports.
type recorder struct{ events chan string }

// opens notes each port that open opens.
func (r recorder) opens(open func(config.Port) (ports.Port, error)) func(config.Port) (Opened, error) {
	return func(w config.Port) (Opened, error) {
		p, err := open(w)
		if err == nil {
			r.events <- fmt.Sprintf("add %d %s%s", w.OFPort, p.Name(), securityText(Security(&w, false)))
		}
		return p, err
	}
}

func (r recorder) SecurePort(no uint32, s l2.PortSecurity) error {
	r.events <- fmt.Sprintf("secure %d%s", no, securityText(s))
	return nil
}

// securityText is what a port may send, " " before each address; nothing for all.
func securityText(s l2.PortSecurity) (text string) {
	for _, mac := range s.MACs {
		text += " " + config.MAC(mac).String()
	}
	if s.Enforced {
		text += " enforced"
	}
	if s.Tags {
		text += " tags"
	}
	return text
}

func (r recorder) RemovePort(no uint32) error {
	r.events <- fmt.Sprintf("remove %d", no)
	return nil
}

func (r recorder) wantEvent(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-r.events:
		if got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("nothing happened, want %q", want)
	}
}

func (r recorder) wantQuiet(t *testing.T) {
	t.Helper()
	select {
	case got := <-r.events:
		t.Fatalf("%q, want nothing", got)
	default:
	}
}

func memoryPort(p config.Port) (ports.Port, error) { return memory.New(p.Link, memory.Options{}), nil }

var twoPorts = []config.Port{
	{Name: "client-a", OFPort: 36, Link: "client-a-1"},
	{Name: "web-a", OFPort: 37, Link: "web-a-1"},
}

// TestPodPortsFollowLinks deletes a pod's namespace under the agent and brings
// the pod back.
func TestPodPortsFollowLinks(t *testing.T) {
	node, pod, other := nstest.New(t), nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "web-a-1", other, "eth0")
	node.Do(t, func() {
		sw := recorder{make(chan string, 100)}
		p := New(twoPorts, sw, sw.opens(memoryPort), slog.New(slog.DiscardHandler))
		p.Reconcile()
		sw.wantEvent(t, "add 37 web-a-1")
		p.Reconcile()
		sw.wantQuiet(t)
		wantMissing := func(want ...string) {
			t.Helper()
			var found []string
			for _, m := range p.Missing() {
				found = append(found, m.Name+": "+m.Why.What)
			}
			if !slices.Equal(found, want) {
				t.Errorf("missing are %q, want %q", found, want)
			}
		}
		wantMissing("client-a: link client-a-1 is not there")

		nstest.AddVeth(t, node, "client-a-1", pod, "eth0")
		p.Reconcile()
		sw.wantEvent(t, "add 36 client-a-1")

		pod.Remove()
		waitGone(t, "client-a-1")
		p.Reconcile()
		sw.wantEvent(t, "remove 36")
		sw.wantQuiet(t)
		wantMissing("client-a: link client-a-1 is gone")

		again := nstest.New(t)
		nstest.AddVeth(t, node, "client-a-1", again, "eth0")
		p.Reconcile()
		sw.wantEvent(t, "add 36 client-a-1")
		wantMissing()
	})
}

func waitGone(t *testing.T, link string) {
	t.Helper()
	nstest.Until(t, link+" is gone", func() bool {
		_, err := netlink.LinkByName(link)
		return err != nil
	})
}

// TestPodPortsReplacedLink: a link that went and came between two looks is
// another link.
func TestPodPortsReplacedLink(t *testing.T) {
	node, pod := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "web-a-1", pod, "eth0")
	node.Do(t, func() {
		sw := recorder{make(chan string, 100)}
		p := New(twoPorts, sw, sw.opens(memoryPort), slog.New(slog.DiscardHandler))
		p.Reconcile()
		sw.wantEvent(t, "add 37 web-a-1")
		if err := netlink.LinkDel(node.Link(t, "web-a-1")); err != nil {
			t.Fatal(err)
		}
		nstest.AddVeth(t, node, "web-a-1", pod, "eth0")
		p.Reconcile()
		sw.wantEvent(t, "remove 37")
		sw.wantEvent(t, "add 37 web-a-1")
	})
}

// TestPodPortsMessages lets the kernel say when to look.
func TestPodPortsMessages(t *testing.T) {
	node, pod := nstest.New(t), nstest.New(t)
	node.Do(t, func() {
		sw := recorder{make(chan string, 100)}
		p := New(twoPorts, sw, sw.opens(memoryPort), slog.New(slog.DiscardHandler))
		changes, done := make(chan netlink.LinkUpdate, 64), make(chan struct{})
		defer close(done)
		if err := netlink.LinkSubscribe(changes, done); err != nil {
			t.Fatal(err)
		}
		nstest.AddVeth(t, node, "web-a-1", pod, "eth0")
		for range 10 {
			<-changes
			if p.Reconcile(); len(sw.events) > 0 {
				break
			}
		}
		sw.wantEvent(t, "add 37 web-a-1")
	})
}

// TestPodPortsCarrier: a port is asked for its link when that has lost its carrier, so
// that it counts what is sent there as lost.
func TestPodPortsCarrier(t *testing.T) {
	node, pod := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "web-a-1", pod, "eth0")
	node.Do(t, func() {
		requests := 0
		open := func(p config.Port) (ports.Port, error) {
			return countedPort{memory.New(p.Link, memory.Options{}), &requests}, nil
		}
		sw := recorder{make(chan string, 100)}
		p := New(twoPorts, sw, sw.opens(open), slog.New(slog.DiscardHandler))
		nstest.Until(t, "the carrier is there", func() bool {
			all, err := linksUp()
			return err == nil && all["web-a-1"].running
		})
		p.Reconcile()
		before := requests
		if p.Reconcile(); requests != before {
			t.Error("asked, though the link is up")
		}
		if err := pod.Links().LinkSetDown(pod.Link(t, "eth0")); err != nil {
			t.Fatal(err)
		}
		nstest.Until(t, "the port is asked", func() bool {
			p.Reconcile()
			return requests != before
		})
	})
}

// countedPort counts questions for what it is.
type countedPort struct {
	*memory.Port
	requests *int
}

func (p countedPort) Info() ports.Info {
	*p.requests++
	return p.Port.Info()
}

func TestPodPortsLogOnce(t *testing.T) {
	node, pod := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "web-a-1", pod, "eth0")
	node.Do(t, func() {
		var text strings.Builder
		tries := 0
		open := func(p config.Port) (ports.Port, error) {
			if tries++; tries < 4 {
				return nil, errors.New("no memory for the rings")
			}
			return memoryPort(p)
		}
		sw := recorder{make(chan string, 100)}
		p := New(twoPorts, sw, sw.opens(open), slog.New(slog.NewTextHandler(&text, nil)))
		for range 4 {
			p.Reconcile()
		}
		sw.wantEvent(t, "add 37 web-a-1")
		if n := strings.Count(text.String(), "no memory for the rings"); n != 1 {
			t.Errorf("%d lines for one error:\n%s", n, text.String())
		}
	})
}

func TestPodPortsStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := New(nil, recorder{}, nil, slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() { p.Run(ctx, nil); close(done) }()
	cancel()
	<-done
}

// TestPodPortsFollowWishes: an unwanted port is closed, a port with another number is opened again,
// and a newly wanted one is opened.
func TestPodPortsFollowWishes(t *testing.T) {
	node, pod, other := nstest.New(t), nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "web-a-1", other, "eth0")
	nstest.AddVeth(t, node, "client-a-1", pod, "eth0")
	node.Do(t, func() {
		sw := recorder{make(chan string, 100)}
		p := New(twoPorts[1:], sw, sw.opens(memoryPort), slog.New(slog.DiscardHandler))
		p.Reconcile()
		sw.wantEvent(t, "add 37 web-a-1")
		p.Set(twoPorts[:1])
		p.Reconcile()
		sw.wantEvent(t, "remove 37")
		sw.wantEvent(t, "add 36 client-a-1")
		p.Set([]config.Port{{Name: "client-a", OFPort: 40, Link: "client-a-1"}})
		p.Reconcile()
		sw.wantEvent(t, "remove 36")
		sw.wantEvent(t, "add 40 client-a-1")
		sw.wantQuiet(t)
	})
}

// TestPodPortsMakeTaps: a port whose link the switch makes is there when it is
// wanted, comes again when the link is deleted, and takes the link with it.
func TestPodPortsMakeTaps(t *testing.T) {
	node := nstest.New(t)
	node.Do(t, func() {
		by := &switchd.Opener{Log: slog.New(slog.DiscardHandler)}
		sw := recorder{make(chan string, 100)}
		taps := []config.Port{{Name: "tc-tap0", OFPort: 34, Link: "tc-tap0", Driver: config.DriverTap}}
		var opened []ports.Port
		open := func(p config.Port) (ports.Port, error) {
			port, err := by.Tap(tap.Options{Name: p.Link, MTU: 1450, Aside: true})
			opened = append(opened, port)
			return port, err
		}
		p := New(taps, sw, sw.opens(open), slog.New(slog.DiscardHandler))
		p.Reconcile()
		sw.wantEvent(t, "add 34 tc-tap0")
		p.Reconcile()
		sw.wantQuiet(t)
		if i := opened[0].Info(); i.Driver != "tap" || !i.Aside || !i.Up {
			t.Errorf("opened %+v", i)
		}
		if err := netlink.LinkDel(node.Link(t, "tc-tap0")); err != nil {
			t.Fatal(err)
		}
		p.Reconcile()
		sw.wantEvent(t, "remove 34")
		sw.wantEvent(t, "add 34 tc-tap0")
		p.Set(nil)
		p.Reconcile()
		sw.wantEvent(t, "remove 34")
		for _, o := range opened {
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestPodPortsRetry: a link that cannot be opened is tried again soon, and then ever
// more seldom; many are opened at once.
func TestPodPortsRetry(t *testing.T) {
	p := New(nil, recorder{}, nil, slog.New(slog.DiscardHandler))
	for _, want := range []time.Duration{20, 40, 80, 160, 320, 640, 1280, 2000, 2000} {
		p.refused = true
		if got := p.nextLook(false); got != want*time.Millisecond {
			t.Errorf("next look after %v, want %v ms", got, want)
		}
	}
	for _, want := range []time.Duration{lookAgain, lookWatched, firstRetry} {
		p.refused = want == firstRetry
		if got := p.nextLook(want != lookAgain); got != want {
			t.Errorf("next look after %v, want %v", got, want)
		}
	}
}

// TestPodPortsAtOnce: ports that wait for one another's opening all open.
func TestPodPortsAtOnce(t *testing.T) {
	var want []config.Port
	for i := range AtOnce {
		want = append(want, config.Port{Name: fmt.Sprint("pod-", i), Link: fmt.Sprint("pod-", i), OFPort: uint32(40 + i)})
	}
	var waiting sync.WaitGroup
	waiting.Add(AtOnce)
	open := func(w config.Port) (Opened, error) {
		waiting.Done()
		waiting.Wait()
		return nil, errors.New("no such link")
	}
	p := New(want, recorder{}, open, slog.New(slog.DiscardHandler))
	p.addAll(want)
	if len(p.failed) != AtOnce || !p.refused {
		t.Errorf("%d ports tried, want %d", len(p.failed), AtOnce)
	}
}
