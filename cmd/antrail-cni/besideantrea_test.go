package main

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/tables/layout"
	"github.com/vishvananda/netlink"
)

// TestProgramBesideAntreas: one switch runs Antrea's pipeline for a Pod that the plugin attaches, and vppl3 on
// two ports that the configuration names. Each Pod reaches those of its own pipeline, and none of the other. The
// next agent goes on with both.
func TestProgramBesideAntreas(t *testing.T) {
	w := newIPv4World(t, "a")
	text := fmt.Sprintf(strings.NewReplacer(`, "fd00:10:10::/64"`, "", `, "fd00:10:10::1/64"`, "").Replace(agentConfig), w.socket(), w.manifests) + "ports:\n"
	routed := map[string]*nstest.Namespace{}
	for i, address := range []string{"10.1.1.12", "10.1.1.9"} {
		no, link := uint32(21+i), fmt.Sprint("routed-", 21+i)
		routed[address] = nstest.New(t)
		nstest.AddVeth(t, w.node, link, routed[address], "eth0")
		w.node.SetUp(t, link)
		routeByLayer3(t, routed[address], address, layout.LinkMAC(no))
		text += fmt.Sprintf("- {name: %s, ofPort: %d, mac: \"00:00:00:00:00:02\", address: %s, program: vppl3}\n", link, no, address)
	}
	w.write("agent.yaml", text)
	w.start()
	a := w.sandbox("a")
	w.addSandbox(a)
	from, to := &sandbox{Namespace: routed["10.1.1.12"], pod: "routed-21"}, &sandbox{Namespace: routed["10.1.1.9"], pod: "routed-22"}
	from.serve(t, ":8080", from.pod)
	to.serve(t, ":8080", to.pod)
	a.serve(t, ":8080", a.pod)
	check := func() {
		t.Helper()
		w.eventually("pods of vppl3", func() error { return from.connects(t, "10.1.1.9:8080") })
		w.eventually("Antrea's pod and its Node", func() error { return (&sandbox{Namespace: w.node}).connects(t, a.addresses()[0]+":8080") })
		for target, s := range map[string]*sandbox{"10.1.1.9:8080": a, a.addresses()[0] + ":8080": from} {
			if err := s.connects(t, target); err == nil {
				t.Errorf("%s reaches %s of the other pipeline", s.pod, target)
			}
		}
		entries := w.entries()
		for _, want := range []string{"table=Classifier, ", `table="ip4-rewrite", `, `priority=65535,in_port="routed-21" actions=goto_table:"acl-plugin-in-ip4-fa"`} {
			if !strings.Contains(entries, want) {
				t.Errorf("no %q in\n%s", want, entries)
			}
		}
	}
	check()
	why, err := api.NewClient(w.socket()).Get(w.Context(), "/flows", map[string][]string{"explain": {"1"}, "names": {"1"}})
	if err != nil || !strings.Contains(string(why), "program vppl3") {
		t.Errorf("no entry is explained by its program: %v\n%s", err, why)
	}
	w.kill()
	w.start()
	check()
	w.must("del", a)
	if err := from.connects(t, "10.1.1.9:8080"); err != nil {
		t.Error(err)
	}
}

// routeByLayer3 gives a namespace an address of 32 bits, and a next hop that nobody has.
func routeByLayer3(t *testing.T, ns *nstest.Namespace, address string, link [6]byte) {
	t.Helper()
	const next = "169.254.1.1"
	eth0 := ns.Link(t, "eth0")
	if err := ns.Links().LinkSetHardwareAddr(eth0, net.HardwareAddr{5: 2}); err != nil {
		t.Fatal(err)
	}
	ns.SetUp(t, "eth0")
	ns.AddAddress(t, "eth0", address+"/32")
	ns.AddNeighbour(t, "eth0", next, link[:])
	for _, r := range []netlink.Route{{Dst: &net.IPNet{IP: net.ParseIP(next), Mask: net.CIDRMask(32, 32)}, Scope: netlink.SCOPE_LINK}, {Gw: net.ParseIP(next)}} {
		r.LinkIndex = eth0.Attrs().Index
		if err := ns.Links().RouteAdd(&r); err != nil {
			t.Fatal(err)
		}
	}
}
