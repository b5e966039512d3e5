package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/internal/nstest"
)

// programConfig is a Node whose card is a port of a program, and the pods of which are the CNI plugin's.
const programConfig = `nodeName: node-a
socket: %s
%s
gateway: {mac: "00:15:5d:0a:00:01", addresses: [10.10.0.1/24]}
tunnel: {localAddress: 192.0.2.10}
podCIDRs: [10.10.0.0/24]
masquerade: false
metrics: {listen: false}
ports:
- {name: uplink, ofPort: 3, role: uplink, mac: %q}
- {name: br-int, ofPort: 4, role: bridge}
`

// newCardWorld makes a Node that runs a program. Its card is the link uplink, and the host outside is
// at the other end of it.
func newCardWorld(t *testing.T, program string) (w *world, outside *nstest.Namespace) {
	t.Helper()
	w, outside = newWorld(t), nstest.New(t)
	nstest.AddVeth(t, w.node, "uplink", outside, "eth0")
	nstest.AddVeth(t, w.node, "br-int", w.node, "host0")
	card := w.node.Link(t, "uplink")
	if err := w.node.Links().LinkSetHardwareAddr(w.node.Link(t, "host0"), card.Attrs().HardwareAddr); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"uplink", "br-int", "host0"} {
		w.node.SetUp(t, link)
	}
	outside.SetUp(t, "eth0")
	w.node.AddAddress(t, "host0", "192.0.2.10/24")
	outside.AddAddress(t, "eth0", "192.0.2.1/24")
	w.node.Sysctl(t, "net/ipv4/conf/all/accept_local", "1")
	w.node.Sysctl(t, "net/ipv4/conf/all/rp_filter", "2")
	w.write("agent.yaml", fmt.Sprintf(programConfig, w.socket(), program, card.Attrs().HardwareAddr))
	return w, outside
}

// TestPodsOfPrograms is W-04, W-07 and A-W8 with real sockets, by program uplink and by windows2020: pods
// have the addresses that host-local gives, a port each, and the way to the outside and to each other. A
// second ADD changes nothing, an agent that is killed leaves the pods to the next one, and DEL takes
// all back.
func TestPodsOfPrograms(t *testing.T) {
	for name, program := range map[string]string{
		"uplink": "program: uplink\nuplink: {mode: lab}", "windows2020": "program: windows2020",
	} {
		t.Run(name, func(t *testing.T) {
			w, outside := newCardWorld(t, program)
			w.setConf(fmt.Sprintf(`, "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": "10.10.0.0/24", "gateway": "10.10.0.1", "rangeStart": "10.10.0.64"}]]}`, w.path("ipam")))
			w.start()
			a, b := w.sandbox("a"), w.sandbox("b")
			ra := w.addSandbox(a)
			entries, ports := w.entries(), fmt.Sprint(w.podPorts())
			first, err := json.Marshal(ra)
			second, secondErr := json.Marshal(w.addSandbox(a))
			if err != nil || secondErr != nil || string(second) != string(first) {
				t.Errorf("ADD twice: %s, then %s", first, second)
			}
			if got := fmt.Sprint(w.podPorts()); got != ports || len(w.podPorts()) != 1 || w.entries() != entries {
				t.Errorf("ADD twice: ports %s, then %s, and entries\n%s\nthen\n%s", ports, got, entries, w.entries())
			}
			if ra.IPs[0].Address.String() != "10.10.0.64/24" {
				t.Errorf("host-local's address is %v", ra.IPs[0].Address)
			}
			w.addSandbox(b)
			if err := a.ping(b.addresses()[0]); err != nil {
				t.Error(err)
			}
			a.wantOutside(t, outside)
			w.kill()
			w.start()
			w.must("check", a)
			a.wantOutside(t, outside)
			if err := b.ping(a.addresses()[0]); err != nil {
				t.Error(err)
			}
			for _, s := range []*sandbox{a, b} {
				w.must("del", s)
				w.must("del", s)
			}
			w.eventually("no pod's port is left", func() error {
				if left := w.podPorts(); len(left) > 0 || strings.Contains(w.entries(), "10.10.0.64") {
					return fmt.Errorf("%v\n%s", left, w.entries())
				}
				return nil
			})
			if text, err := os.ReadFile(w.path("run/cni.record")); err != nil || !strings.Contains(string(text), `"attachments": []`) {
				t.Errorf("record: %v, %s", err, text)
			}
		})
	}
}

// TestRoutedPodsOfPrograms: a pod that is attached by layer 3 beside windows2020 is of program vppl3.
func TestRoutedPodsOfPrograms(t *testing.T) {
	w, _ := newCardWorld(t, "program: windows2020")
	w.setConf(byLayer3)
	w.start()
	a, b := w.sandbox("a"), w.sandbox("b")
	ra := w.addSandbox(a)
	w.addSandbox(b)
	a.wantRouted(t, ra.IPs[0].Address.IP, ra.Interfaces[0].Mac)
	a.wantTTL(t, b.addresses()[0], "ttl=63")
	if !strings.Contains(w.entries(), `table="ip4-lookup"`) {
		t.Errorf("no table of vppl3:\n%s", w.entries())
	}
	w.must("del", a)
	w.must("del", b)
}

// podPorts are the ports of the switch that the plugin's pods have.
func (w *world) podPorts() (all []string) {
	w.Helper()
	for link, no := range w.ports() {
		if no >= 0x1000 {
			all = append(all, link)
		}
	}
	return all
}

// entries are all, without counters.
func (w *world) entries() string {
	w.Helper()
	text, err := api.NewClient(w.socket()).Get(w.Context(), "/flows", url.Values{"stats": {"0"}, "names": {"1"}})
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// wantOutside connects to a host outside, which has to see the Node's address with a port of pods.
func (s *sandbox) wantOutside(t *testing.T, outside *nstest.Namespace) {
	t.Helper()
	var l net.Listener
	var err error
	outside.Do(t, func() { l, err = net.Listen("tcp", "192.0.2.1:0") })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := make(chan net.Addr, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			seen <- c.RemoteAddr()
			c.Write([]byte("!"))
			c.Close()
		}
	}()
	if err := s.connects(t, l.Addr().String()); err != nil {
		t.Errorf("%s: %v", s.pod, err)
		return
	}
	if at := netip.MustParseAddrPort((<-seen).String()); at.Addr().String() != "192.0.2.10" || at.Port() < 10000 || at.Port() > 20000 {
		t.Errorf("the outside saw %v", at)
	}
}
