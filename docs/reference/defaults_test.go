package main

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/kube"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/switchd"
)

// learned is a configuration with an empty section kubernetes, and what an API server says
// of its Node.
func learned(t *testing.T) *config.Config {
	t.Helper()
	t.Setenv("NODE_NAME", "node-a")
	c, err := config.Parse([]byte("kubernetes: {}\n"))
	if err == nil {
		err = c.Learn(&config.NodeFacts{
			Node:         "node-a",
			PodCIDRs:     []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24"), netip.MustParsePrefix("fd00:10::/64")},
			Addresses:    []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("203.0.113.8")},
			ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// oneOfEach is a configuration from files with one peer and one port.
func oneOfEach(t *testing.T) *config.Config {
	t.Helper()
	c, err := config.Parse([]byte(`{nodeName: a, flows: a.flows, podCIDRs: [10.10.0.0/24], podDriver: afpacket,
gateway: {mac: "0a:00:00:00:00:01", addresses: [10.10.0.1/24]}, tunnel: {localAddress: 203.0.113.7},
peers: [{name: b, address: 203.0.113.9, podCIDRs: [10.10.1.0/24], gateways: [10.10.1.1]}],
ports: [{name: web, ofPort: 5}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// number reads a number of a tag, which may have commas between thousands.
func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tagged has, for each key whose default is in words, those words as a pattern and what
// the program has if the key is not set. The test compares both as text.
var tagged = map[string]struct {
	words string
	want  func(t *testing.T, numbers []string) (got, want any)
}{
	"nodeName": {`\$NODE_NAME with kubernetes`, func(t *testing.T, _ []string) (any, any) { return learned(t).NodeName, "node-a" }},
	"podCIDRs": {`from the API with kubernetes`, func(t *testing.T, _ []string) (any, any) {
		return learned(t).PodCIDRs, "[10.10.0.0/24 fd00:10::/64]"
	}},
	"workers": {`(2), or (1) on a single processor`, func(t *testing.T, n []string) (any, any) {
		return config.Defaults().Workers, map[bool]string{true: n[1], false: n[0]}[runtime.NumCPU() == 1]
	}},
	"auditLog.path": {`(networkpolicy\.log) beside the socket`, func(_ *testing.T, n []string) (any, any) {
		return config.Defaults().AuditLog.Path, "/run/antrail/" + n[0]
	}},
	"gateway.mac": {`made of the Node's name with kubernetes`, func(t *testing.T, _ []string) (any, any) {
		first := learned(t)
		t.Setenv("NODE_NAME", "node-b")
		second, err := config.Parse([]byte("kubernetes: {}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return first.Gateway.MAC == learned(t).Gateway.MAC && first.Gateway.MAC != second.Gateway.MAC, true
	}},
	"gateway.addresses": {`the first of each of podCIDRs with kubernetes`, func(t *testing.T, _ []string) (any, any) {
		return learned(t).Gateway.Addresses, "[10.10.0.1/24 fd00:10::1/64]"
	}},
	"gateway.mtu": {`what the tunnel leaves of the underlay's, or of (1500) if that is less`, func(t *testing.T, n []string) (any, any) {
		c := oneOfEach(t) // no link of this machine has its address
		return c.Gateway.MTU, number(t, n[0]) - c.Overhead()
	}},
	"tunnel.localAddress": {`the Node's first InternalIP with kubernetes`, func(t *testing.T, _ []string) (any, any) {
		return learned(t).Tunnel.LocalAddress, "203.0.113.7"
	}},
	// The switch finds the link: TestUplinkOfLocalAddress in switchd.
	"tunnel.uplink": {`the link that has localAddress`, func(t *testing.T, _ []string) (any, any) { return learned(t).Tunnel.Uplink, "" }},
	"peers[].nodeIPs": {`address`, func(t *testing.T, _ []string) (any, any) {
		p := oneOfEach(t).Peers[0]
		return p.NodeIPs, []netip.Addr{p.Address}
	}},
	"ports[].link": {`name`, func(t *testing.T, _ []string) (any, any) { p := oneOfEach(t).Ports[0]; return p.Link, p.Name }},
	"ports[].role": {`(pod)`, func(t *testing.T, n []string) (any, any) {
		c, err := config.Parse([]byte(`{nodeName: a, program: windows2020, podCIDRs: [10.10.0.0/24],
gateway: {mac: "0a:00:00:00:00:01", addresses: [10.10.0.1/24]}, tunnel: {localAddress: 203.0.113.7},
ports: [{name: u, ofPort: 3, role: uplink}, {name: b, ofPort: 4, role: bridge},
{name: web, ofPort: 5, mac: "0a:00:00:00:00:05", address: 10.10.0.5}, {name: db, ofPort: 6, mac: "0a:00:00:00:00:06", address: 10.10.0.6, role: ` + n[0] + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return len(c.ProgramNode().Pods), 2
	}},
	"uplink.egress": {`loop`, func(t *testing.T, _ []string) (any, any) {
		c, err := config.Parse([]byte(`{nodeName: a, program: uplink, uplink: {mode: lab}, podCIDRs: [10.10.0.0/24],
gateway: {mac: "0a:00:00:00:00:01", addresses: [10.10.0.1/24]}, tunnel: {localAddress: 203.0.113.7},
ports: [{name: u, ofPort: 3, role: uplink}, {name: b, ofPort: 4, role: bridge}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return c.Uplink.Egress, "loop"
	}},
	"ports[].driver": {`podDriver`, func(t *testing.T, _ []string) (any, any) { c := oneOfEach(t); return c.Ports[0].Driver, c.PodDriver }},
	"kubernetes.kubeconfig": {`the Pod's own service account`, func(t *testing.T, _ []string) (any, any) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "") // no Pod
		_, err := kube.New(kube.Config{Kubeconfig: learned(t).Kubernetes.Kubeconfig}, store.NewStore(store.DeriveEndpoints))
		return strings.Contains(fmt.Sprint(err), "KUBERNETES_SERVICE_HOST"), true
	}},
	"kubernetes.serviceCIDRs": {`ServiceCIDRs of the API`, func(t *testing.T, _ []string) (any, any) {
		return fromAPI(t).ServiceCIDRs, "[10.96.0.0/12]"
	}},
	"kubernetes.nodePortAddresses": {`the Node's and (127\.0\.0\.1)`, func(t *testing.T, n []string) (any, any) {
		return fromAPI(t).NodePortAddresses, "[203.0.113.7 203.0.113.8 " + n[0] + "]"
	}},
	"afxdp.busyPoll": {`none`, func(*testing.T, []string) (any, any) {
		return switchd.CardsOf(config.Defaults().AFXDP).BusyPoll.Time, "0s"
	}},
	// With 0 the socket does not set SO_BUSY_POLL_BUDGET; 8 is BUSY_POLL_BUDGET of Linux.
	"afxdp.busyPollBudget": {`the kernel's 8`, func(*testing.T, []string) (any, any) {
		return switchd.CardsOf(config.Defaults().AFXDP).BusyPoll.Budget, 0
	}},
	"conntrack.max": {`([\d,]+) for each processor, at least ([\d,]+)`, func(t *testing.T, n []string) (any, any) {
		return conntrack.DefaultMax(), max(number(t, n[1]), number(t, n[0])*runtime.NumCPU())
	}},
	"conntrack.newRate": {`([\d,]+)`, func(t *testing.T, n []string) (any, any) { return conntrack.DefaultNewRate, number(t, n[0]) }},
	"conntrack.zoneMax": {`no limit`, func(*testing.T, []string) (any, any) { return config.Defaults().Conntrack.ZoneMax, 0 }},
}

// fromAPI is the NodeConfig of learned.
func fromAPI(t *testing.T) *cluster.NodeConfig {
	t.Helper()
	c := learned(t)
	return c.NodeConfig(&config.NodeFacts{Addresses: []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("203.0.113.8")},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}})
}

// TestTagsSayTheDefault: each default that a tag has in words is what the program does.
func TestTagsSayTheDefault(t *testing.T) {
	tags := map[string]string{}
	collectTags(tags, "", reflect.TypeFor[config.Config]())
	for key, check := range tagged {
		m := regexp.MustCompile("^" + check.words + "$").FindStringSubmatch(tags[key])
		if m == nil {
			t.Errorf("%s has the default %q in its tag; the test knows %q", key, tags[key], check.words)
			continue
		}
		t.Run(key, func(t *testing.T) {
			if got, want := check.want(t, m[1:]); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the reference says %q; the program has %v, want %v", tags[key], got, want)
			}
		})
		delete(tags, key)
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		t.Errorf("%s has the default %q in its tag, which nothing compares with the program: set it in setDefaults, or add it to tagged", key, tags[key])
	}
}

// collectTags fills in the tags of the keys of a struct, and of those below it.
func collectTags(tags map[string]string, above string, t reflect.Type) {
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		path := strings.TrimPrefix(above+"."+key, ".")
		if text := f.Tag.Get("default"); text != "" {
			tags[path] = text
		}
		if s, list := structBelow(f.Type); s != nil {
			if list {
				path += "[]"
			}
			collectTags(tags, path, s)
		}
	}
}
