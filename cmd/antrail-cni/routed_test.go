package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const byLayer3 = `, "attach": "layer3"`

// newIPv4World is a world whose Node has no IPv6, which layer 3 lacks.
func newIPv4World(t *testing.T, pods ...string) *world {
	t.Helper()
	w := newWorld(t, pods...)
	v4 := strings.NewReplacer(`, "fd00:10:10::/64"`, "", `, "fd00:10:10::1/64"`, "", `, "fd00:10:10::1"`, "")
	w.write("manifests/cluster.yaml", v4.Replace(clusterManifests))
	w.write("agent.yaml", v4.Replace(fmt.Sprintf(agentConfig, w.socket(), w.manifests)))
	return w
}

// TestAttachedByLayer3 is A-V1, A-V3, A-V5 and A-V6 with real sockets: two Pods have an address of
// 32 bits, one MAC address and a next hop that nobody has, beside a Pod that is attached by
// layer 2. All reach each other and the Node; CHECK, and ADD and DEL twice (V-01 to V-08, V-14, V-16).
func TestAttachedByLayer3(t *testing.T) {
	w := newIPv4World(t, "a", "b", "c")
	w.start()
	a, b, c := w.sandbox("a"), w.sandbox("b"), w.sandbox("c")
	w.addSandbox(c)
	w.setConf(byLayer3)
	ra, rb := w.addSandbox(a), w.addSandbox(b)
	if again := w.addSandbox(a); fmt.Sprint(again.IPs[0].Address, again.Routes) != fmt.Sprint(ra.IPs[0].Address, ra.Routes) {
		t.Errorf("ADD twice: %v %v, then %v %v", ra.IPs, ra.Routes, again.IPs, again.Routes)
	}
	if ra.Interfaces[0].Mac == rb.Interfaces[0].Mac {
		t.Errorf("both links have the address %s on the switch's side", ra.Interfaces[0].Mac)
	}
	a.wantRouted(t, ra.IPs[0].Address.IP, ra.Interfaces[0].Mac)
	b.wantRouted(t, rb.IPs[0].Address.IP, rb.Interfaces[0].Mac)
	captured := map[*sandbox]func() int{a: captureARP(t, a), b: captureARP(t, b)}
	for _, x := range []struct {
		from, to *sandbox
		ttl      string
	}{{a, b, "ttl=63"}, {b, a, "ttl=63"}, {a, c, "ttl=63"}, {c, a, "ttl=63"}, {a, a, "ttl=64"}} {
		x.from.wantTTL(t, x.to.addresses()[0], x.ttl)
	}
	a.wantTTL(t, "10.10.0.1", "ttl=64") // the Node's own end
	w.eventually("the Node reaches a", func() error { return (&sandbox{Namespace: w.node}).ping(a.addresses()[0]) })
	if err := a.ping("169.254.1.1"); err == nil {
		t.Error("somebody has the next hop's address")
	}
	for range 50 { // A-V1: none of the two asks by ARP, and nobody asks them
		a.wantTTL(t, b.addresses()[0], "ttl=63")
	}
	for s, arp := range captured {
		if n := arp(); n != 0 {
			t.Errorf("%d ARP frames at %s", n, s.pod)
		}
	}
	// Nobody but the next hop is in the neighbour table, and it is as ADD made it: no ARP was asked.
	a.wantRouted(t, ra.IPs[0].Address.IP, ra.Interfaces[0].Mac)
	w.kill()
	w.start()
	a.wantTTL(t, b.addresses()[0], "ttl=63")
	for _, s := range []*sandbox{a, b} {
		w.must("check", s)
	}
	w.mustLackNeighbour(a)
	for _, s := range []*sandbox{a, b, c} {
		w.must("del", s)
		w.must("del", s)
	}
	w.wantNothing()
}

// wantRouted compares addresses, routes and neighbours of a sandbox with what layer 3 gives.
func (s *sandbox) wantRouted(t *testing.T, ip net.IP, nextHopMAC string) {
	t.Helper()
	link, err := s.Links().LinkByName(s.ifname)
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := s.Links().AddrList(link, unix.AF_INET)
	if err != nil || len(addrs) != 1 || addrs[0].IPNet.String() != ip.String()+"/32" || link.Attrs().HardwareAddr.String() != "00:00:00:00:00:02" {
		t.Errorf("%s: addresses %v at %v, %v", s.pod, addrs, link.Attrs().HardwareAddr, err)
	}
	routes, err := s.Links().RouteList(link, unix.AF_INET)
	var got []string
	for _, r := range routes {
		got = append(got, fmt.Sprintf("%v via %v scope %v", r.Dst, r.Gw, r.Scope))
	}
	if text := strings.Join(got, "; "); err != nil || text != "0.0.0.0/0 via 169.254.1.1 scope universe; 169.254.1.1/32 via <nil> scope link" {
		t.Errorf("%s: routes %s, %v", s.pod, text, err)
	}
	neighbours, err := s.Links().NeighList(link.Attrs().Index, unix.AF_INET)
	if err != nil || len(neighbours) != 1 || neighbours[0].State != netlink.NUD_PERMANENT || neighbours[0].IP.String() != "169.254.1.1" ||
		neighbours[0].HardwareAddr.String() != nextHopMAC {
		t.Errorf("%s: neighbours %v, %v", s.pod, neighbours, err)
	}
}

// captureARP counts the ARP frames that a sandbox sends and receives, until the count is asked for
// (packet(7)).
func captureARP(t *testing.T, s *sandbox) (count func() int) {
	t.Helper()
	const arp = unix.ETH_P_ARP<<8&0xff00 | unix.ETH_P_ARP>>8
	fd := -1
	var err error
	s.Do(t, func() { fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, arp) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return func() (n int) {
		frame := make([]byte, 2000)
		for {
			got, err := unix.Read(fd, frame)
			if err != nil {
				return n
			}
			t.Logf("%s: %x", s.pod, frame[:got])
			n++
		}
	}
}

// TestAttachedAsThePodSays: the annotation of a Pod outranks the configuration, both ways, and a
// Pod whose annotation says neither has no interface.
func TestAttachedAsThePodSays(t *testing.T) {
	w := newIPv4World(t, "a", "b", "c")
	for pod, how := range map[string]string{"a": "layer3", "b": "layer2", "c": "layer4"} {
		w.write("manifests/pod-"+pod+".yaml", fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default, uid: uid-%s, annotations: {antrail.io/attach: %s}}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Pending}
`, pod, pod, how))
	}
	w.start()
	a, b, c := w.sandbox("a"), w.sandbox("b"), w.sandbox("c")
	routed := w.addSandbox(a)
	w.setConf(byLayer3)
	w.addSandbox(b)
	a.wantRouted(t, routed.IPs[0].Address.IP, routed.Interfaces[0].Mac)
	if routes, err := b.Command("ip", "route").CombinedOutput(); err != nil || strings.Contains(string(routes), "169.254.1.1") {
		t.Errorf("b is attached by layer 3: %v: %s", err, routes)
	}
	a.wantTTL(t, b.addresses()[0], "ttl=63")
	if out, err := w.cnitool("add", c); err == nil || !strings.Contains(string(out), `annotation antrail.io/attach of Pod default/c is "layer4"`) {
		t.Errorf("ADD of c: %v: %s", err, out)
	}
}

// wantTTL sends an echo request, whose answer has to come with a TTL.
func (s *sandbox) wantTTL(t *testing.T, to, ttl string) {
	t.Helper()
	if out, err := s.Command("ping", "-c1", "-W5", to).CombinedOutput(); err != nil || !strings.Contains(string(out), " "+ttl+" ") {
		t.Errorf("%s to %s, want %s: %v: %s", s.pod, to, ttl, err, out)
	}
}

// mustLackNeighbour takes the neighbour away, which CHECK has to find.
func (w *world) mustLackNeighbour(s *sandbox) {
	w.Helper()
	link, err := s.Links().LinkByName(s.ifname)
	if err == nil {
		err = s.Links().NeighDel(&netlink.Neigh{LinkIndex: link.Attrs().Index, Family: unix.AF_INET, IP: net.IPv4(169, 254, 1, 1)})
	}
	if err != nil {
		w.Fatal(err)
	}
	if out, err := w.cnitool("check", s); err == nil || !strings.Contains(string(out), "no permanent neighbour 169.254.1.1") {
		w.Errorf("CHECK without the neighbour: %v: %s", err, out)
	}
}

// TestPoliciesByLayer3 is A-V4 with real sockets: a connection passes where the server's policy
// lets the client in, and answers pass though nobody may ask the client. A Service's address
// leads to a Pod behind layer 3, and back to the Pod itself (A-V8).
func TestPoliciesByLayer3(t *testing.T) {
	w := newIPv4World(t, "client", "server", "other")
	w.setConf(byLayer3)
	w.write("manifests/pod-other.yaml", `
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: default, uid: uid-other, labels: {app: other}}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
`)
	w.write("manifests/objects.yaml", `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: server, namespace: default}
spec:
  podSelector: {matchLabels: {app: server}}
  policyTypes: [Ingress]
  ingress: [{from: [{podSelector: {matchLabels: {app: client}}}], ports: [{protocol: TCP, port: 8080}]}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: client, namespace: default}
spec: {podSelector: {matchLabels: {app: client}}, policyTypes: [Ingress]}
---
apiVersion: v1
kind: Service
metadata: {name: own, namespace: default}
spec: {selector: {app: other}, clusterIP: 10.96.0.9, ports: [{protocol: TCP, port: 80, targetPort: 8080}]}
`)
	w.start()
	client, server, other := w.sandbox("client"), w.sandbox("server"), w.sandbox("other")
	for _, s := range []*sandbox{client, server, other} {
		w.addSandbox(s)
		s.serve(t, ":8080", s.pod)
		s.serve(t, ":9090", s.pod)
	}
	at := func(s *sandbox, port string) string { return s.addresses()[0] + ":" + port }
	w.eventually("the client reaches the server", func() error { return client.connects(t, at(server, "8080")) })
	for _, x := range []struct {
		from *sandbox
		to   string
	}{{client, at(server, "9090")}, {other, at(server, "8080")}, {server, at(client, "8080")}} {
		if err := x.from.connects(t, x.to); err == nil {
			t.Errorf("%s reaches %s", x.from.pod, x.to)
		}
	}
	for _, s := range []*sandbox{client, server, other} { // other is its own endpoint
		w.eventually(s.pod+" reaches the Service", func() error { return s.connects(t, "10.96.0.9:80") })
	}
}

// connects opens a connection and reads what the listener says.
func (s *sandbox) connects(t *testing.T, to string) (err error) {
	t.Helper()
	var c net.Conn
	s.Do(t, func() { c, err = net.DialTimeout("tcp", to, time.Second) })
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

// TestLayer3HasNoIPv6: a Node with both families refuses the attachment, and leaves nothing.
func TestLayer3HasNoIPv6(t *testing.T) {
	w := newWorld(t, "a")
	w.setConf(byLayer3)
	w.start()
	if out, err := w.cnitool("add", w.sandbox("a")); err == nil || !strings.Contains(string(out), "layer 3 attaches no IPv6 address") {
		t.Errorf("%v: %s", err, out)
	}
	w.wantNothing()
	w.setConf(`, "attach": "layer4"`)
	if out, err := w.cnitool("add", w.sandbox("a")); err == nil || !strings.Contains(string(out), "neither layer2 nor layer3") {
		t.Errorf("%v: %s", err, out)
	}
}
