package demo

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/internal/testsize"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// One story is played on every driver, with offload and without: counters, drops, policies and
// live traces must be the same. Only the packets that pass in the kernel differ, and these are
// counted, too.

// carriers are what carries a lab's packets.
type carriers struct{ pods, tunnel, offload string }

// everyCarriers are all of them. With -short it is each third: the tests of shared labs have
// the first.
var everyCarriers = []carriers{
	{config.DriverAFPacket, config.DriverKernel, config.OffloadAuto},
	{config.DriverAFPacket, config.DriverKernel, config.OffloadOff},
	{config.DriverAFXDP, config.DriverKernel, config.OffloadAuto},
	{config.DriverAFXDP, config.DriverAFXDP, config.OffloadOff},
	{config.DriverAFPacket, config.DriverAFXDP, config.OffloadOff},
	{config.DriverAFXDP, config.DriverAFXDP, config.OffloadAuto},
	{config.DriverAFPacket, config.DriverAFXDP, config.OffloadAuto},
	{config.DriverAFXDP, config.DriverKernel, config.OffloadOff},
}

func (c carriers) String() string { return c.pods + " " + c.tunnel + " " + c.offload }

// route is two ends of datagrams, and the Nodes whose switches they pass.
type route struct {
	from, to string
	nodes    []string
}

var routes = []route{
	{sender, receiver, []string{"node-a"}},
	{receiver, far, []string{"node-a", "node-b"}},
	{sender, "outside", []string{"node-a"}},
	{"node-a", far, []string{"node-a", "node-b"}},
}

// ofPod says whether a pod sends, not the Node.
func (r *route) ofPod() bool { return r.from != "node-a" }

// port is where the datagrams enter the first switch.
func (r *route) port() string {
	if r.ofPod() {
		return r.from
	}
	return config.DefaultGateway
}

// offloaded says whether the first Node's kernel forwards the datagrams.
func (c *carriers) offloaded(r *route) bool {
	return c.offload == config.OffloadAuto && (c.pods == config.DriverAFPacket || !r.ofPod()) && (c.tunnel == config.DriverKernel || len(r.nodes) == 1)
}

// TestStoryOfOffload plays the story in the lab of the other tests of offload.
func TestStoryOfOffload(t *testing.T) {
	l := offloadLab(t)
	everyCarriers[0].play(t, l.world(t), l.objects)
}

// TestStoryOfDrivers plays it in labs of all other drivers.
func TestStoryOfDrivers(t *testing.T) {
	t.Parallel()
	for _, c := range testsize.Some(everyCarriers)[1:] {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			o := offloading(t, lab.Options{TunnelDriver: c.tunnel}, dir)
			o.Driver, o.Offload = c.pods, c.offload
			c.play(t, worldOf(t, o), dir)
		})
	}
}

// countingPolicy allows what the story sends, so that its rules count it.
const countingPolicy = `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: counting}
spec:
  priority: 2
  tier: securityops
  appliedTo: [{podSelector: {matchLabels: {app: client}}}, {podSelector: {matchLabels: {app: db}}}]
  ingress: [{name: In, action: Allow, ports: [{protocol: UDP, port: 5001}]}]
  egress: [{name: Out, action: Allow, ports: [{protocol: UDP, port: 5001}]}]
`

// play tells the story of each route, in the lab whose objects are in a directory.
func (c *carriers) play(t *testing.T, w *world, objects string) {
	remove := w.putPolicy(t, objects, "counting", countingPolicy, map[string]string{"node-a": "In", "node-b": "In"})
	defer remove()
	for i, r := range routes {
		w := w
		if i%2 == 1 {
			w = w.ipv6()
		}
		t.Run(r.from+" to "+r.to, func(t *testing.T) {
			s := &story{T: t, world: w, route: r, kernel: c.offloaded(&r), objects: objects}
			s.begin()
			s.wantCounted()
			if r.ofPod() {
				s.wantDropped()
			}
			s.wantTraced()
			s.wantDenied()
			s.wantCounted()
		})
	}
	if seen, err := accounted(t.Context(), w); err != nil {
		t.Error(err)
	} else {
		t.Log(seen)
	}
}

// story is a connection of numbered datagrams, all of which come back.
type story struct {
	*testing.T
	*world
	route
	kernel  bool // whether the first Node's kernel forwards them
	objects string

	conn   net.Conn
	no     uint64 // of the next datagram
	counts map[string]uint64
}

// begin sends the first datagram, by which neighbours are found.
func (s *story) begin() {
	s.counts = s.ruleCounts()
	c, err := s.dialUDP(s.Context(), s.from, fmt.Sprintf("%s:%d", s.to, echoPort))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	s.conn = c
	s.exchange(1)
}

// exchange sends datagrams, a few at a time, and wants each back once.
func (s *story) exchange(n int) {
	s.Helper()
	const underWay = 16
	missing := map[uint64]bool{}
	b := make([]byte, 16)
	for sent := 0; sent < n || len(missing) > 0; {
		if sent < n && len(missing) < underWay {
			if _, err := s.conn.Write(binary.BigEndian.AppendUint64(nil, s.no)); err != nil {
				s.Fatal(err)
			}
			missing[s.no] = true
			s.no++
			sent++
			continue
		}
		s.conn.SetReadDeadline(time.Now().Add(waitAtMost))
		got, err := s.conn.Read(b)
		if err != nil {
			s.Fatalf("%d of %d datagrams did not come back: %v", len(missing), sent, err)
		}
		if no := binary.BigEndian.Uint64(b); got != 8 || !missing[no] {
			s.Fatalf("%x came, which is under way no more", b[:got])
		}
		delete(missing, binary.BigEndian.Uint64(b))
	}
}

// passed is how many packets that entered by the route's port were forwarded in the kernel.
func (s *story) passed() uint64 {
	s.Helper()
	all, err := s.ports(s.Context(), "node-a")
	if err != nil {
		s.Fatal(err)
	}
	return all[s.port()].Offload.Rx.Packets
}

// wantOffloaded exchanges datagrams until the kernel forwards them, or, where it must not, some.
func (s *story) wantOffloaded() {
	s.Helper()
	before := s.passed()
	if !s.kernel {
		s.exchange(200)
		if n := s.passed() - before; n != 0 {
			s.Errorf("%d packets passed in the kernel, want none", n)
		}
		return
	}
	waitUntil(s.T, "datagrams in the kernel", func() bool {
		s.exchange(100)
		return s.passed() >= before+50
	})
}

// ruleCounts are the packets that rules have counted of this story, by Node and rule.
func (s *story) ruleCounts() map[string]uint64 {
	s.Helper()
	all := map[string]uint64{}
	if s.to != "outside" {
		node := s.nodes[len(s.nodes)-1]
		all[node+" In"] = s.rule(s.T, node, "counting", "In").Packets
	}
	if s.ofPod() {
		all["node-a Out"] = s.rule(s.T, "node-a", "counting", "Out").Packets
	}
	return all
}

// wantCounted wants rules to have counted each datagram there and back, wherever it passed.
func (s *story) wantCounted() {
	s.Helper()
	s.wantOffloaded()
	want := map[string]uint64{}
	for name, before := range s.counts {
		want[name] = before + 2*s.no
	}
	var got map[string]uint64
	for range looks {
		if got = s.ruleCounts(); fmt.Sprint(got) == fmt.Sprint(want) {
			return
		}
		time.Sleep(lookEvery)
	}
	s.Errorf("rules counted %v, want %v: of %d datagrams", got, want, s.no)
}

// wantDropped sends copies of the connection's datagrams with faults: each is dropped, and
// counted by its reason.
func (s *story) wantDropped() {
	s.Helper()
	link, err := s.raw(s.from, "eth0")
	if err != nil {
		s.Fatal(err)
	}
	defer link.Close()
	for reason, frame := range s.faulty() {
		const copies = 10
		before := s.droppedAs(reason)
		for range copies {
			if err := link.Send(frame); err != nil {
				s.Fatal(err)
			}
		}
		waitUntil(s.T, reason+" in the counters", func() bool { return s.droppedAs(reason) >= before+copies })
		if n := s.droppedAs(reason) - before; n != copies {
			s.Errorf("%s: %d packets were counted of %d", reason, n, copies)
		}
	}
}

// droppedAs counts the first Node's drops for a reason or in a table.
func (s *story) droppedAs(reason string) uint64 {
	s.Helper()
	n, err := s.dropped(s.Context(), reason)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// faulty are datagrams of the connection with a fault each, by where they are dropped.
func (s *story) faulty() map[string][]byte {
	pod, gateway := (frames{s.world}).pod(s.from)
	o := packettest.Options{
		EthSrc: pod.MAC, EthDst: gateway, Src: s.addresses[s.from], Dst: s.addresses[s.to], DstPort: echoPort,
		SrcPort: uint16(s.conn.LocalAddr().(*net.UDPAddr).Port), Payload: []byte("forged"),
	}
	if s.to == receiver {
		near, _ := (frames{s.world}).pod(s.to)
		o.EthDst = near.MAC
	}
	build := lab.Dual[func(packettest.Options) []byte]{V4: packettest.UDP4, V6: packettest.UDP6}.Of(s.v6)
	foreign, spoofed, dead := o, o, build(o)
	foreign.EthSrc[5] ^= 0x80
	spoofed.Src = strangerIP.Of(s.v6)
	if ip := dead[packet.EthernetLen:]; s.v6 {
		packet.IPv6(ip).SetHopLimit(0)
	} else {
		packet.IPv4(ip).SetTTL(0)
		packet.IPv4(ip).UpdateChecksum()
	}
	return map[string][]byte{"foreign_mac": build(foreign), "SpoofGuard": build(spoofed), "ttl_zero": dead}
}

// wantTraced watches datagrams, and their answers: each is one walk over the route's Nodes, even
// where they had passed in the kernel.
func (s *story) wantTraced() {
	s.Helper()
	const count = 20
	before := s.takenBack()
	l := s.watchLive(s.T, api.LiveTraceRequest{Filter: fmt.Sprintf("udp and host %s", s.addresses[s.to]), Count: count}, s.nodes...)
	s.exchange(2 * count)
	seen := 0
	for way := range l.ways {
		seen++
		var nodes []string
		for _, walk := range way {
			nodes = append(nodes, walk.Node)
		}
		slices.Sort(nodes)
		if last := way[len(way)-1].Verdict; !slices.Equal(nodes, s.nodes) || len(last.Outputs) != 1 {
			s.Errorf("a datagram was seen by %v and ended as %+v, want one output and %v", nodes, last, s.nodes)
		}
	}
	if err := <-l.ended; err != nil || seen != count || l.counts.Missed != 0 {
		s.Errorf("%d walks, %+v, %v", seen, l.counts, err)
	}
	if n := s.takenBack() - before; (n > 0) != s.kernel {
		s.Errorf("%d offload entries were taken back for the trace, in the kernel %v", n, s.kernel)
	}
}

// takenBack counts the offload entries that the first Node took back for live traces; 0 without
// offload.
func (s *story) takenBack() uint64 {
	s.Helper()
	var all []api.Counter
	if err := s.agent("node-a").JSON(s.Context(), "/cache", nil, &all); err != nil {
		s.Fatal(err)
	}
	i := slices.IndexFunc(all, func(c api.Counter) bool { return c.Name == "offload_traced" })
	if i < 0 {
		return 0
	}
	return all[i].Value
}

// deniedPort is where datagrams are not answered.
const deniedPort = 5009

// wantDenied sends datagrams that are never answered. From the moment at which a policy that drops them is
// reported as installed none arrives, and the rule counts each. Without the policy they arrive again.
func (s *story) wantDenied() {
	s.Helper()
	o, passed := s.oneWay(), s.passed()
	o.want(400)
	if n := s.passed() - passed; (n > 0) != s.kernel {
		s.Errorf("%d datagrams without answers passed in the kernel, which may forward: %v", n, s.kernel)
	}
	node, rule, text := "node-a", "Out", fmt.Sprintf(denyingPolicy, s.from, "egress", "Out", deniedPort)
	if s.to != "outside" {
		node, rule, text = s.nodes[len(s.nodes)-1], "In", fmt.Sprintf(denyingPolicy, s.to, "ingress", "In", deniedPort)
	}
	remove := s.putPolicy(s.T, s.objects, "denying", text, map[string]string{node: rule})
	const denied = 50
	before := o.arrived.Load()
	for range denied {
		o.send()
	}
	waitUntil(s.T, "drops of the rule", func() bool { return s.rule(s.T, node, "denying", rule).Packets >= denied })
	if n := s.rule(s.T, node, "denying", rule).Packets; n != denied || o.arrived.Load() != before {
		s.Errorf("the policy is installed: %d of %d datagrams were dropped, %d arrived", n, denied, o.arrived.Load()-before)
	}
	remove()
	o.want(100)
}

// denyingPolicy drops what a pod sends or gets.
const denyingPolicy = `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: denying}
spec:
  priority: 1
  tier: securityops
  appliedTo: [{podSelector: {matchLabels: {pod: %s}}}]
  %s: [{name: %s, action: Drop, ports: [{protocol: UDP, port: %d}]}]
`

// oneWay is a story's datagrams without answers.
type oneWay struct {
	*story
	conn    net.Conn
	arrived *atomic.Uint64
}

// oneWay makes both ends.
func (s *story) oneWay() *oneWay {
	s.Helper()
	var to net.PacketConn
	err := s.lab.In(s.to, func() (err error) {
		to, err = net.ListenPacket("udp", fmt.Sprintf(":%d", deniedPort))
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	o := &oneWay{story: s, arrived: new(atomic.Uint64)}
	if o.conn, err = s.dialUDP(s.Context(), s.from, fmt.Sprintf("%s:%d", s.to, deniedPort)); err != nil {
		s.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 16); ; o.arrived.Add(1) {
			if _, _, err := to.ReadFrom(b); err != nil {
				return
			}
		}
	}()
	s.Cleanup(func() { o.conn.Close(); to.Close(); <-done })
	return o
}

func (o *oneWay) send() {
	o.Helper()
	if _, err := o.conn.Write([]byte("one way")); err != nil {
		o.Fatal(err)
	}
}

// want sends datagrams, a few at a time, and wants all to arrive.
func (o *oneWay) want(n int) {
	o.Helper()
	const atOnce = 20
	for range n / atOnce {
		before := o.arrived.Load()
		for range atOnce {
			o.send()
		}
		waitUntil(o.T, "datagrams without answers", func() bool { return o.arrived.Load() >= before+atOnce })
	}
}

// putPolicy writes a policy into the directory of objects, and returns when rules of it stand on
// Nodes. remove takes the policy away, and returns when they do not.
func (w *world) putPolicy(t *testing.T, objects, name, text string, rules map[string]string) (remove func()) {
	t.Helper()
	file := filepath.Join(objects, name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	wait := func(want ledger.State) {
		t.Helper()
		for node, rule := range rules {
			waitUntil(t, fmt.Sprintf("rule %s that is %q", rule, want), func() bool { return w.findRule(t, node, name, rule).State == want })
		}
	}
	wait(ledger.Installed)
	return func() {
		t.Helper()
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
		wait("")
	}
}
