package control

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// endpointsOf makes a view of node-a in zone east with one EndpointSlice. Each text has the last byte of an address, @node,
// and ready, serving, terminating. zone=Z and node=N are hints.
func endpointsOf(t *testing.T, svc *cluster.Service, words ...string) *view {
	t.Helper()
	slice := &cluster.EndpointSlice{Family: 4, Ports: []cluster.EndpointPort{{Name: "", Protocol: cluster.TCP, Number: 80}}}
	for _, w := range words {
		slice.Endpoints = append(slice.Endpoints, parseEndpoint(t, w))
	}
	c := cluster.EmptyCluster()
	c.ServiceSlices[cluster.Name{Namespace: svc.Key.Namespace, Name: svc.Key.Name}] = []*cluster.EndpointSlice{slice}
	return &view{Cluster: c, node: "node-a", zone: "east", nodeIPs: map[netip.Addr]bool{}}
}

func parseEndpoint(t *testing.T, text string) cluster.Endpoint {
	t.Helper()
	var e cluster.Endpoint
	for i, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case i == 0:
			host, node, _ := strings.Cut(word, "@")
			e.Addresses = []netip.Addr{netip.MustParseAddr("10.0.0." + host)}
			e.NodeName = "node-" + node
		case word == "ready":
			e.Ready, e.Serving = true, true
		case word == "serving":
			e.Serving = true
		case word == "terminating":
			e.Terminating = true
		case key == "zone":
			e.ForZones = append(e.ForZones, value)
		case key == "node":
			e.ForNodes = append(e.ForNodes, value)
		default:
			t.Fatalf("%q in %q", word, text)
		}
	}
	return e
}

// hostsOf is a set as the last bytes of its addresses; - if the set is nil.
func hostsOf(set *[]endpoint) string {
	if set == nil {
		return "-"
	}
	var hosts []string
	for _, e := range *set {
		hosts = append(hosts, fmt.Sprint(e.at.Addr().As4()[3]))
	}
	return strings.Join(hosts, " ")
}

// TestChooseEndpoints compares the sets with kube-proxy's rules.
func TestChooseEndpoints(t *testing.T) {
	const both, onlyCluster, onlyLocal = "both", "cluster", "local"
	for _, c := range []struct {
		name, uses     string
		hints          bool
		endpoints      []string
		cluster, local string
	}{
		{"ready ones", both, false, []string{"1@a ready", "2@b ready", "3@a"}, "1 2", "1"},
		{"none ready here", both, false, []string{"1@a", "2@b ready"}, "2", ""},
		{"cluster alone", onlyCluster, false, []string{"1@a ready"}, "1", "-"},
		{"local alone", onlyLocal, false, []string{"1@a ready", "2@b ready"}, "-", "1"},
		{"no endpoints", both, false, nil, "", ""},
		{"ready before terminating", both, false, []string{"1@a serving terminating", "2@a ready"}, "2", "2"},
		{"serving while terminating", both, false, []string{"1@a serving terminating", "2@b serving terminating", "3@b terminating"}, "1 2", "1"},
		{"terminating here, ready there", both, false, []string{"1@a serving terminating", "2@b ready"}, "2", "1"},
		{"serving but not terminating", both, false, []string{"1@a serving"}, "", ""},
		{"one of two slices' doubles", both, false, []string{"1@a ready", "1@a ready"}, "1", "1"},
		{"hints", both, true, []string{"1@a ready zone=east", "2@b ready zone=west"}, "1", "1"},
		{"hints do not bind the local ones", both, true, []string{"1@a ready zone=west", "2@b ready zone=east"}, "2", "1"},
		{"a hint is missing", onlyCluster, true, []string{"1@a ready zone=east", "2@b ready"}, "1 2", "-"},
		{"no hint is for here", onlyCluster, true, []string{"1@b ready zone=west", "2@b ready zone=north"}, "1 2", "-"},
		{"hints not asked for", onlyCluster, false, []string{"1@a ready zone=east", "2@b ready zone=west"}, "1 2", "-"},
		{"only ready ones need hints", onlyCluster, true, []string{"1@a ready zone=east", "2@b ready zone=west", "3@b"}, "1", "-"},
		{"nothing ready, no hint counts", onlyCluster, true, []string{"1@b serving terminating zone=west"}, "1", "-"},
		{"hints for Nodes", onlyCluster, true, []string{"1@a ready zone=east node=node-b", "2@b ready zone=west node=node-a"}, "2", "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			svc := &cluster.Service{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindService, Namespace: "default", Name: "s"}}, TopologyHints: c.hints,
				Ports: []cluster.ServicePort{{Protocol: cluster.TCP, Port: 80}}}
			v := endpointsOf(t, svc, c.endpoints...)
			sets := v.chooseEndpoints(svc, 0, tables.IPv4, traffic{local: c.uses != onlyCluster, cluster: c.uses != onlyLocal})
			if got := hostsOf(sets.cluster); got != c.cluster {
				t.Errorf("cluster: %q, want %q", got, c.cluster)
			}
			if got := hostsOf(sets.local); got != c.local {
				t.Errorf("local: %q, want %q", got, c.local)
			}
		})
	}
}

// TestTraffic checks which sets the addresses and policies of a port use.
func TestTraffic(t *testing.T) {
	inside := []address{{}}
	outside := []address{{}, {ServiceAddress: tables.ServiceAddress{External: true}}}
	dsr := []address{{ServiceAddress: tables.ServiceAddress{External: true, DSR: true}}}
	for _, c := range []struct {
		svc   cluster.Service
		addrs []address
		want  traffic
	}{
		{cluster.Service{}, inside, traffic{cluster: true}},
		{cluster.Service{}, outside, traffic{cluster: true}},
		{cluster.Service{InternalLocal: true}, inside, traffic{local: true}},
		{cluster.Service{InternalLocal: true}, outside, traffic{local: true, cluster: true}},
		{cluster.Service{ExternalLocal: true}, inside, traffic{cluster: true}},
		{cluster.Service{ExternalLocal: true}, outside, traffic{local: true, cluster: true}},
		{cluster.Service{}, dsr, traffic{local: true, cluster: true}},
	} {
		if got := trafficOf(&c.svc, c.addrs); got != c.want {
			t.Errorf("%+v with %d addresses: %+v, want %+v", c.svc, len(c.addrs), got, c.want)
		}
	}
}

// TestPlaceEgress finds addresses and Nodes of Egresses without a status.
func TestPlaceEgress(t *testing.T) {
	c := cluster.EmptyCluster()
	put := func(o cluster.Object) { c.Set(o.Metadata().Key.Kind).Put(o) }
	for i, name := range []string{"a", "b", "c"} {
		put(&cluster.Node{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindNode, Name: name}, Labels: cluster.Labels{"egress": fmt.Sprint(i > 0)}},
			Addresses: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("192.168.1.%d", i+1))}})
	}
	addr := netip.MustParseAddr
	put(&cluster.ExternalIPPool{Meta: cluster.Meta{Key: cluster.Key{Kind: cluster.KindExternalIPPool, Name: "pool"}},
		Ranges: []cluster.IPRange{{First: addr("10.1.0.1"), Last: addr("10.1.0.2")}}, Nodes: cluster.SelectLabels(cluster.Labels{"egress": "true"})})
	egress := func(name string, e cluster.Egress) {
		e.Key = cluster.Key{Kind: cluster.KindEgress, Name: name}
		put(&e)
	}
	egress("1-status", cluster.Egress{Addr: addr("10.9.9.9"), Node: "b"})
	egress("2-nodes-own", cluster.Egress{Addr: addr("192.168.1.3")})
	egress("3-nobodys", cluster.Egress{Addr: addr("10.8.8.8")})
	egress("4-given", cluster.Egress{Addr: addr("10.1.0.1"), Pools: []string{"pool"}})
	egress("5-pool", cluster.Egress{Pools: []string{"none", "pool"}})
	egress("6-full", cluster.Egress{Pools: []string{"pool"}})
	egress("7-empty", cluster.Egress{})
	places := placeEgresses(&view{Cluster: c})
	var got []string
	for _, k := range sortedKeys(places) {
		p := places[k]
		onPool := ""
		if slices.Contains([]string{"b", "c"}, p.node) && len(c.Egresses[k].Pools) > 0 {
			onPool, p.node = "pool", ""
		}
		got = append(got, fmt.Sprintf("%s %v %s%s %s", k.Name, p.addr, p.node, onPool, p.lacks))
	}
	want := []string{
		"1-status 10.9.9.9 b ",
		"2-nodes-own 192.168.1.3 c ",
		"3-nobodys 10.8.8.8  no Node holds the address 10.8.8.8 yet",
		"4-given 10.1.0.1 pool ",
		"5-pool 10.1.0.2 pool ",
		"6-full invalid IP  the Egress has no address yet",
		"7-empty invalid IP  the Egress has no address yet",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
