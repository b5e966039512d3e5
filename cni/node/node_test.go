package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/cni"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// memorySwitch records its ports. It knows every Pod except those in unknown.
type memorySwitch struct {
	mu      sync.Mutex
	plugged []Port
	unknown map[string]error
	closed  error // why no port is in force
	taken   Taken
	attach  string
	changed chan struct{}
	status  error
}

func (s *memorySwitch) Pod(p cni.Pod) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unknown[p.Name]
}

func (s *memorySwitch) Taken(cni.Pod) Taken   { return s.taken }
func (s *memorySwitch) Attach(cni.Pod) string { return s.attach }
func (s *memorySwitch) Status() error         { return s.status }

func (s *memorySwitch) Plug(all []Port) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plugged = all
}

func (s *memorySwitch) InForce(p Port) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.plugged, func(o Port) bool { return o.OFPort == p.OFPort && o.Name == p.Name }) {
		return errors.New("it is not plugged in")
	}
	return s.closed
}

func (s *memorySwitch) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// change changes something and closes Changed.
func (s *memorySwitch) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// rig is a Node in a namespace of its own.
type rig struct {
	*testing.T
	ns     *nstest.Namespace
	config Config
	sw     *memorySwitch
	*Node
	killAt int // the step that ends the call; < 0: none
	steps  []string
}

func newRig(t *testing.T, cidrs ...string) *rig {
	t.Helper()
	if len(cidrs) == 0 {
		cidrs = []string{"10.10.0.0/24", "fd00:10:10::/64"}
	}
	r := &rig{T: t, ns: nstest.New(t), sw: &memorySwitch{changed: make(chan struct{}), unknown: map[string]error{}}}
	r.config = Config{
		Record: filepath.Join(t.TempDir(), "cni.record"), MTU: 1450, Wait: 20 * time.Second, Switch: r.sw, Log: slog.New(slog.DiscardHandler),
	}
	for _, c := range cidrs {
		p := netip.MustParsePrefix(c)
		r.config.CIDRs = append(r.config.CIDRs, p)
		r.config.Gateways = append(r.config.Gateways, p.Addr().Next())
	}
	r.restart()
	t.Cleanup(func() { r.Node.Close() })
	return r
}

// restart makes a Node from the record, as the next agent does.
func (r *rig) restart() {
	r.Helper()
	if r.Node != nil {
		r.home.close()
	}
	r.sw.plugged, r.killAt = nil, -1
	r.ns.Do(r.T, func() {
		var err error
		if r.Node, err = New(r.config); err != nil {
			r.Fatal(err)
		}
	})
	r.Node.step = func(name string) {
		r.steps = append(r.steps, name)
		if r.killAt == len(r.steps)-1 {
			runtime.Goexit()
		}
	}
}

// killed makes a call that a kill may end, and says whether it did.
func (r *rig) killed(at int, call func()) (killed bool) {
	r.steps, r.killAt = nil, at
	killed = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
		killed = false
	}()
	<-done
	r.killAt = -1
	return killed
}

// request is a request for an interface of a sandbox.
func request(ns *nstest.Namespace, pod, ifname string) *cni.Request {
	return &cni.Request{
		Attachment: cni.Attachment{Container: "box-" + ns.Name, Interface: ifname}, Netns: ns.Path(), Network: "antrail",
		Pod: cni.Pod{Namespace: "default", Name: pod, UID: "uid-" + pod},
	}
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// add calls ADD, which must succeed.
func (r *rig) add(q *cni.Request) *types100.Result {
	r.Helper()
	result, err := r.Add(r.Context(), q)
	r.must(err)
	return result
}

// text is a result as the runtime's JSON.
func text(r *types100.Result) string {
	var b strings.Builder
	r.PrintTo(&b)
	return b.String()
}

// code checks the code of an error.
func (r *rig) code(what string, err error, want uint) {
	r.Helper()
	var e *types.Error
	if !errors.As(err, &e) || e.Code != want {
		r.Errorf("%s: %v, want an error with code %d", what, err, want)
	}
}

// wantConsistent checks that record, links and switch agree on the number of attachments,
// and that no two share anything.
func (r *rig) wantConsistent(n int) {
	r.Helper()
	all := r.record.all()
	links := r.veths()
	if len(all) != n || len(links) != n {
		r.Errorf("%d attachments in the record and %d links, want %d", len(all), len(links), n)
	}
	seen := map[string]bool{}
	claim := func(what any) {
		if text := fmt.Sprint(what); seen[text] {
			r.Errorf("%s is given twice", text)
		} else {
			seen[text] = true
		}
	}
	for _, a := range all {
		if !a.Made || !slices.Contains(links, a.Link) || !r.plugged[a.Attachment] {
			r.Errorf("%+v: made, link and plugged: %v, %v, %v", a, a.Made, slices.Contains(links, a.Link), r.plugged[a.Attachment])
		}
		claim(a.OFPort)
		claim(a.MAC)
		for _, ip := range a.addrs() {
			claim(ip)
		}
	}
	if len(r.plugged) != n {
		r.Errorf("%d are plugged in, want %d", len(r.plugged), n)
	}
}

// veths are the Node's ends.
func (r *rig) veths() (names []string) {
	r.Helper()
	all, err := r.home.links.LinkList()
	r.must(err)
	for _, l := range all {
		if l.Type() == "veth" {
			names = append(names, l.Attrs().Name)
		}
	}
	return names
}

// wantEmpty checks that a sandbox has nothing but lo.
func (r *rig) wantEmpty(ns *nstest.Namespace) {
	r.Helper()
	all, err := ns.Links().LinkList()
	r.must(err)
	if len(all) != 1 {
		r.Errorf("%s has %d links", ns.Name, len(all))
	}
	for _, family := range []int{2, 10} {
		rules, err := ns.Links().RuleList(family)
		r.must(err)
		if len(rules) > 3 { // local, main, default; IPv6 has two
			r.Errorf("%s has routing rules %v", ns.Name, rules)
		}
	}
}

// TestVerbsInAnyOrder: each verb once, twice, before and after the others.
func TestVerbsInAnyOrder(t *testing.T) {
	r := newRig(t)
	box := nstest.New(t)
	q := request(box, "web", "eth0")
	ctx := t.Context()
	r.must(r.Del(ctx, q))
	r.code("CHECK before ADD", r.Check(ctx, q), types.ErrUnknownContainer)
	first := r.add(q)
	if again := r.add(q); text(again) != text(first) || len(first.IPs) != 2 || len(first.Routes) != 2 {
		t.Errorf("ADD twice: %s\nand %s", text(first), text(again))
	}
	r.wantConsistent(1)
	checked := *q
	checked.Previous = first
	r.must(r.Check(ctx, &checked))
	r.code("CHECK without prevResult", r.Check(ctx, q), cni.CodeNotAsGiven)
	r.must(r.Del(ctx, q))
	r.must(r.Del(ctx, q))
	r.code("CHECK after DEL", r.Check(ctx, &checked), types.ErrUnknownContainer)
	r.wantConsistent(0)
	r.wantEmpty(box)
	if again := r.add(q); again.IPs[0].Address.IP.Equal(first.IPs[0].Address.IP) {
		t.Errorf("%v is given again at once", again.IPs[0])
	}
}

// TestSandboxOfTheSameName: a new sandbox under an old name gets an interface. Nothing of
// the old sandbox is left.
func TestSandboxOfTheSameName(t *testing.T) {
	r := newRig(t)
	q := request(nstest.New(t), "web", "eth0")
	first := r.add(q)
	box := nstest.New(t)
	q.Netns = box.Path()
	q.Previous = r.add(q)
	if text(q.Previous) == text(first) {
		t.Error("the second sandbox was given the first one's interface")
	}
	r.must(r.Check(t.Context(), q))
	r.wantConsistent(1)
	r.must(r.Del(t.Context(), q))
	r.wantConsistent(0)
	r.wantEmpty(box)
}

// TestCheckWaitsForPort: CHECK right after a restart of the agent waits for the port. If the port
// stays closed, the error says why.
func TestCheckWaitsForPort(t *testing.T) {
	r := newRig(t)
	q := request(nstest.New(t), "web", "eth0")
	q.Previous = r.add(q)
	r.sw.change(func() { r.sw.closed = errors.New("its link is not open yet") })
	checked := make(chan error, 1)
	go func() { checked <- r.Check(t.Context(), q) }()
	r.sw.change(func() { r.sw.closed = nil })
	r.must(<-checked)
	r.sw.change(func() { r.sw.closed = errors.New("its link is not open yet") })
	err := r.Check(t.Context(), q)
	if r.code("CHECK of a closed port", err, cni.CodeNotAsGiven); !strings.Contains(fmt.Sprint(err), "its link is not open yet") {
		t.Error(err)
	}
}

// TestSeveralInterfaces: each interface has its port, and is removed alone. Packets from a
// further interface's address leave by it.
func TestSeveralInterfaces(t *testing.T) {
	r := newRig(t)
	box := nstest.New(t)
	var last *types100.Result
	for i, name := range []string{"eth0", "net1", "net2"} {
		q := request(box, "web", name)
		q.Previous = r.add(q)
		r.must(r.Check(t.Context(), q))
		if p := r.sw.plugged[i]; len(r.sw.plugged) != i+1 || p.Further != map[bool]string{true: name}[i > 0] {
			t.Errorf("%s: ports %+v", name, r.sw.plugged)
		}
		last = q.Previous
	}
	r.wantConsistent(3)
	for _, ip := range last.IPs {
		from := []string{"-4", "route", "get", "192.0.2.1", "from"}
		if ip.Address.IP.To4() == nil {
			from = []string{"-6", "route", "get", "2001:db8::1", "from"}
		}
		out, err := box.Command("ip", append(from, ip.Address.IP.String())...).CombinedOutput()
		if err != nil || !slices.Contains(strings.Fields(string(out)), "net2") {
			t.Errorf("the way from %v: %v, %s", ip.Address.IP, err, out)
		}
	}
	r.must(r.Del(t.Context(), request(box, "web", "eth0")))
	r.wantConsistent(2)
	eth0 := request(box, "web", "eth0")
	eth0.Previous = r.add(eth0)
	r.must(r.Check(t.Context(), eth0))
	for _, name := range []string{"net1", "eth0", "net2"} {
		r.must(r.Del(t.Context(), request(box, "web", name)))
	}
	r.wantConsistent(0)
	r.wantEmpty(box)
}

// TestTwoSandboxes: while a Pod restarts, the newer sandbox has the port. The older one
// keeps its address until DEL.
func TestTwoSandboxes(t *testing.T) {
	r := newRig(t)
	old, next := request(nstest.New(t), "web", "eth0"), request(nstest.New(t), "web", "eth0")
	old.Previous = r.add(old)
	next.Previous = r.add(next)
	if len(r.sw.plugged) != 1 || !next.Previous.IPs[0].Address.IP.Equal(r.sw.plugged[0].IPs[0].AsSlice()) {
		t.Errorf("ports %+v, want one with %v", r.sw.plugged, next.Previous.IPs[0])
	}
	r.code("CHECK of the older", r.Check(t.Context(), old), cni.CodeNotAsGiven)
	r.must(r.Del(t.Context(), old))
	r.must(r.Check(t.Context(), next))
	r.wantConsistent(1)
}

// TestWaits: ADD waits for its Pod and its entries, for a limited time. If the runtime
// gives up, nothing is left.
func TestWaits(t *testing.T) {
	r := newRig(t)
	box := nstest.New(t)
	q := request(box, "web", "eth0")
	r.sw.unknown["web"], r.sw.closed = errors.New("not known yet"), errors.New("not in force yet")
	added := make(chan error, 1)
	go func() { _, err := r.Add(t.Context(), q); added <- err }()
	r.sw.change(func() { delete(r.sw.unknown, "web") })
	r.sw.change(func() { r.sw.closed = nil })
	r.must(<-added)
	r.must(r.Del(t.Context(), q))

	r.sw.closed = errors.New("not in force yet")
	ctx, cancel := context.WithCancel(t.Context())
	r.Node.step = func(name string) {
		if name == "plugged" {
			cancel()
		}
	}
	_, err := r.Add(ctx, q)
	r.code("ADD that was broken off", err, types.ErrTryAgainLater)
	r.wantConsistent(0)
	r.wantEmpty(box)

	r.sw.unknown["web"] = types.NewError(cni.CodePodUnsuited, "it is in its Node's network", "")
	_, err = r.Add(t.Context(), q)
	r.code("ADD of an unsuited Pod", err, cni.CodePodUnsuited)
}

// TestGC: GC removes attachments that are not valid, of its network only.
func TestGC(t *testing.T) {
	r := newRig(t)
	stays, goes, other := request(nstest.New(t), "a", "eth0"), request(nstest.New(t), "b", "eth0"), request(nstest.New(t), "c", "eth0")
	other.Network = "another"
	for _, q := range []*cni.Request{stays, goes, other} {
		q.Previous = r.add(q)
	}
	r.must(r.GC(t.Context(), &cni.Request{Network: "antrail", Valid: []cni.Attachment{stays.Attachment}}))
	r.wantConsistent(2)
	r.must(r.Check(t.Context(), stays))
	r.must(r.Check(t.Context(), other))
	r.code("CHECK of what was collected", r.Check(t.Context(), goes), types.ErrUnknownContainer)
}
