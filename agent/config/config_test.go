package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseDefaults(t *testing.T) {
	c, err := Parse([]byte(goodConfig))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct{ what, got, want string }{
		{"socket", c.Socket, "/run/antrail/agent.sock"},
		{"gateway", c.Gateway.Name, "antrea-gw0"},
		{"gateway mac", c.Gateway.MAC.String(), "ba:5e:d1:55:aa:c0"},
		{"tunnel", c.Tunnel.Name, "antrea-tun0"},
		{"link of client-a", c.Ports[0].Link, "client-a"},
		{"driver of client-a", c.Ports[0].Driver, "auto"},
		{"link of web-a", c.Ports[1].Link, "web-a-3f2a1"},
	} {
		if s.got != s.want {
			t.Errorf("%s: %q, want %q", s.what, s.got, s.want)
		}
	}
	if !*c.Masquerade || c.Gateway.OFPort != 2 || c.Tunnel.OFPort != 1 {
		t.Errorf("defaults: %+v", c)
	}
}

// TestIPv6Underlay: the tunnel's header is longer, so the default MTU is smaller.
func TestIPv6Underlay(t *testing.T) {
	text := strings.NewReplacer("192.168.77.102", "fd00:77::102", "192.168.77.103", "fd00:77::103").Replace(goodConfig)
	c, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if c.Gateway.MTU != 1430 {
		t.Errorf("MTU %d", c.Gateway.MTU)
	}
}

func TestParseFaults(t *testing.T) {
	for _, s := range []struct{ name, old, new, want string }{
		{"unknown key", "nodeName:", "nodename_: x\nnodeName:", `nodename_: unknown key (did you mean nodeName?)`},
		{"unknown key of a port", "ofPort: 36", "ofPort: 36, tag: 7", `ports[0].tag: unknown key; there are name`},
		{"no node name", "nodeName: node-a", "", "nodeName: missing"},
		{"driver of nobody", "nodeName:", "podDriver: dpdk\nnodeName:", `podDriver: "dpdk" is none of auto, afxdp and afpacket`},
		{"polling for half a microsecond", "nodeName:", "afxdp: {busyPoll: 500ns}\nnodeName:", "afxdp.busyPoll: 500ns is not whole microseconds up to a second"},
		{"polling for a minute", "nodeName:", "afxdp: {busyPoll: 1m}\nnodeName:", "afxdp.busyPoll: 1m0s is not whole"},
		{"too large a budget", "nodeName:", "afxdp: {busyPoll: 20us, busyPollBudget: 65536}\nnodeName:", "afxdp.busyPollBudget: 65536 is not between 1 and 65535"},
		{"a budget for nothing", "nodeName:", "afxdp: {busyPollBudget: 64}\nnodeName:", "afxdp.busyPollBudget: 64, without busyPoll"},
		{"no flows", "flows: node-a.flows", "", "flows, program, manifests, kubernetes: set one of them"},
		{"no address for the tunnel", "localAddress: 192.168.77.102", "", "tunnel.localAddress: missing"},
		{"peer without an address", "address: 192.168.77.103,", "", "peers[0].address: missing"},
		{"flows and manifests", "flows: node-a.flows", "flows: node-a.flows\nmanifests: objects", "manifests: not together with flows"},
		{"number beside manifests", "flows: node-a.flows", "manifests: objects", "ports[0].ofPort: 36; leave it out: the NodeConfig has it"},
		{"bad mac", "ba:5e:d1:55:aa:c0", "ba:5e:d1:55:aa", "invalid MAC"},
		{"long mac", "ba:5e:d1:55:aa:c0", "ba:5e:d1:55:aa:c0:01:02", "no Ethernet address"},
		{"bad address", "10.10.0.1/24", "10.10.0.300/24", "10.10.0.300/24"},
		{"two pod ranges of a family", "podCIDRs: [10.10.0.0/24,", "podCIDRs: ['fd00::/64',", "podCIDRs[1]: fd00:10:10::/64 is the second of its family"},
		{"IPv4 in IPv6", "10.10.0.1/24", "'::ffff:10.10.0.1/120'", "gateway.addresses[0]"},
		{"no gateway of a family", `addresses: [10.10.0.1/24, "fd00:10:10::1/64"]`, "addresses: [10.10.0.1/24]", "gateway.addresses: none is of the family of podCIDRs[1]"},
		{"IPv6 peer", "address: 192.168.77.103", "address: 'fd00::3'", "peers[0].address: fd00::3 is not of the family of tunnel.localAddress"},
		{"link-local tunnel", "localAddress: 192.168.77.102", "localAddress: 'fe80::1%eth0'", "tunnel.localAddress: fe80::1%eth0 cannot be the address of a Node"},
		{"peer without a gateway", `gateways: [10.10.1.1, "fd00:10:10:1::1"]`, "gateways: [10.10.1.1]", "peers[0].gateways: there are 1 for 2 podCIDRs"},
		{"peer's gateway elsewhere", `"fd00:10:10:1::1"]`, `"fd00:10:10:2::1"]`, "peers[0].gateways[1]: fd00:10:10:2::1 is not in fd00:10:10:1::/64"},
		{"MTU too small for IPv6", "  mac: ba", "  mtu: 1279\n  mac: ba", "gateway.mtu: 1279 is not between 1280 and 9000"},
		{"number twice", "ofPort: 37", "ofPort: 36", "ports[1].ofPort: 36 is taken by ports[0]"},
		{"gateway's number", "ofPort: 37", "ofPort: 2", "ports[1].ofPort: 2 is taken by gateway"},
		{"name twice", "name: web-a", "name: client-a", "ports[1].name: client-a is taken by ports[0]"},
		{"link twice", "link: web-a-3f2a1", "link: client-a", "ports[1].link: client-a is taken by ports[0]"},
		{"reserved number", "ofPort: 37", "ofPort: 65534", "ports[1].ofPort"},
		{"gateway's number reserved", "  mac: ba", "  ofPort: 65534\n  mac: ba", "gateway.ofPort: 65534"},
		{"tunnel's number reserved", "  localAddress", "  ofPort: 65280\n  localAddress", "tunnel.ofPort: 65280"},
		{"frames longer than a driver's", "  mac: ba", "  mtu: 9001\n  mac: ba", "gateway.mtu: 9001 is not between 1280 and 9000"},
		{"unknown driver", "driver: afxdp", "driver: dpdk", `"dpdk" is none of auto, afxdp, afpacket and tap`},
		{"timeouts", "nodeName:", "conntrack: {profile: long}\nnodeName:", `conntrack.profile: "long" is neither default nor ovs`},
		{"connections", "nodeName:", "conntrack: {max: 1000}\nnodeName:", "conntrack.max: 1000 is not between 1024 and"},
		{"new connections", "nodeName:", "conntrack: {newRate: -2}\nnodeName:", "conntrack.newRate: -2 is not between"},
		{"unknown timeout", "nodeName:", "conntrack: {timeouts: {tcp: 1h}}\nnodeName:", "conntrack.timeouts.tcp: is none of tcpSynSent, "},
		{"timeout of nothing", "nodeName:", "conntrack: {timeouts: {udpSingle: 0s}}\nnodeName:", "conntrack.timeouts.udpSingle: 0s is not between 1s and 720h0m0s"},
		{"timeout for ever", "nodeName:", "conntrack: {timeouts: {udpSingle: 721h}}\nnodeName:", "conntrack.timeouts.udpSingle: 721h0m0s is not between"},
		{"timeout without unit", "nodeName:", "conntrack: {timeouts: {udpSingle: '30'}}\nnodeName:", "missing unit in duration"},
		{"zone", "nodeName:", "conntrack: {zones: {65536: 1}}\nnodeName:", "65536"},
		{"limit of a zone", "nodeName:", "conntrack: {zones: {1: -1}}\nnodeName:", "-1"},
		{"workers", "nodeName:", "workers: 500\nnodeName:", "workers: 500"},
	} {
		t.Run(s.name, func(t *testing.T) {
			text := strings.Replace(goodConfig, s.old, s.new, 1)
			if text == goodConfig {
				t.Fatalf("%q is not in the configuration", s.old)
			}
			_, err := Parse([]byte(text))
			if err == nil || !strings.Contains(err.Error(), s.want) {
				t.Errorf("error %v, want one with %q", err, s.want)
			}
		})
	}
}

func TestLoadPaths(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(path, []byte(goodConfig+"groups: /etc/groups\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "node-a.flows"); c.Flows != want {
		t.Errorf("flows %s, want %s", c.Flows, want)
	}
	if c.Groups != "/etc/groups" {
		t.Errorf("groups %s", c.Groups)
	}
	if _, err := Load(filepath.Join(dir, "none.yaml")); err == nil {
		t.Error("no error for a file that is not there")
	}
}

// TestAssignmentsFile: beside the socket, and never of flow files.
func TestAssignmentsFile(t *testing.T) {
	manifests := strings.Replace(goodConfig, "flows: node-a.flows", "manifests: objects", 1)
	manifests = strings.NewReplacer("ofPort: 36", "link: client-a-1", "ofPort: 37, ", "").Replace(manifests)
	for text, want := range map[string]string{
		goodConfig:                         "",
		manifests:                          "/run/antrail/assignments.json",
		"socket: /x/b.sock\n" + manifests:  "/x/b.assignments.json",
		"socket: /x/b.sock\n" + goodConfig: "",
	} {
		c, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.AssignmentsFile(); got != want {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
	}
}

// TestWordsOfConfig: offload and keepAwake are auto when not given, and nothing but
// their words, also as YAML reads on and off without quotes.
func TestWordsOfConfig(t *testing.T) {
	for key, c := range map[string]struct {
		words []string
		of    func(*Config) string
	}{
		"offload":   {[]string{OffloadAuto, OffloadOff}, func(c *Config) string { return c.Offload }},
		"keepAwake": {[]string{KeepAwakeAuto, KeepAwakeOn, KeepAwakeOff}, func(c *Config) string { return c.KeepAwake }},
	} {
		lines := map[string]string{"": "auto"}
		for _, w := range c.words {
			lines[key+": "+w+"\n"], lines[key+": \""+w+"\"\n"] = w, w
		}
		for line, want := range lines {
			conf, err := Parse([]byte(line + goodConfig))
			if err != nil || c.of(conf) != want {
				t.Errorf("%q: %v; want %q", line, err, want)
			}
		}
		_, err := Parse([]byte(key + ": sometimes\n" + goodConfig))
		if err == nil || !strings.Contains(err.Error(), key+":") {
			t.Errorf("%s: sometimes: %v", key, err)
		}
	}
}

// TestCNIFilesConfig: paths are whole, and objects are needed.
func TestCNIFilesConfig(t *testing.T) {
	for _, s := range []struct {
		c    Config
		want string
	}{
		{Config{CNI: CNIFiles{Plugin: "bin/antrail-cni"}, Manifests: "m"}, `cni.plugin: "bin/antrail-cni" is not an absolute path`},
		{Config{CNI: CNIFiles{Config: "/etc/cni/net.d/a"}, Flows: "f"}, "cni: not together with flows"},
		{Config{CNI: CNIFiles{Config: "/etc/cni/net.d/a"}, Manifests: "m"}, ""},
	} {
		var f faults
		s.c.CNI.check(&s.c, &f)
		if len(f) == 0 && s.want != "" || len(f) > 0 && (s.want == "" || !strings.Contains(f[0].Error(), s.want)) {
			t.Errorf("faults %v, want %q", f, s.want)
		}
	}
}

// TestDeployedConfig: the ConfigMap that is shipped is a configuration.
func TestDeployedConfig(t *testing.T) {
	t.Setenv("NODE_NAME", "node-a")
	c, err := Load("../../deploy/kustomize/base/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.NodeName != "node-a" || c.Socket != DefaultSocket || !c.Kubernetes.ProxyAll || len(c.CNI.files()) != 2 {
		t.Errorf("%+v", c)
	}
}
