package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// leftovers finds the tables of an agent that runs or was killed.
func leftovers(*Config) Line {
	const check = "another agent"
	rules, err := ruleset()
	if err == nil && (strings.Contains(rules, "table inet antrail {") || strings.Contains(rules, "table netdev antrail {")) {
		return Line{Warn, check, "nftables has tables named antrail", "if no agent runs, one was killed: the next agent takes its changes over, antrail uninstall undoes them"}
	}
	return ok(check, "no tables of one")
}

// networks finds networks that a container runtime may use in place of ours: it takes the
// first file by name.
func networks(c *Config) Line {
	const check = "CNI"
	files, err := os.ReadDir(c.CNIDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Line{Warn, check, err.Error(), "make it readable"}
	}
	var others []string
	for _, f := range files {
		if strings.Contains(".conf .conflist .json", filepath.Ext(f.Name())) && filepath.Ext(f.Name()) != "" && f.Name() != c.CNIName {
			others = append(others, f.Name())
		}
	}
	if len(others) > 0 {
		return Line{Warn, check, fmt.Sprintf("%s in %s", strings.Join(others, ", "), c.CNIDir), "a runtime takes the first file by name: remove the others, and the links and rules of their programs"}
	}
	return ok(check, "no other network in %s", c.CNIDir)
}

// plugins looks for the programs of our network configuration. If one is missing, no pod
// starts.
func plugins(c *Config) Line {
	const check = "CNI plugins"
	file := filepath.Join(c.CNIDir, c.CNIName)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return ok(check, "no %s yet", file)
	}
	var conf struct {
		Plugins []struct {
			Type string `json:"type"`
		} `json:"plugins"`
	}
	if err == nil {
		err = json.Unmarshal(text, &conf)
	}
	if err != nil {
		return Line{Fail, check, fmt.Sprintf("%s: %v", file, err), "correct the file: until then no pod starts"}
	}
	var missing, all []string
	for _, p := range conf.Plugins {
		all = append(all, p.Type)
		if _, err := exec.LookPath(filepath.Join(c.CNIBin, p.Type)); err != nil {
			missing = append(missing, p.Type)
		}
	}
	if len(missing) > 0 {
		return Line{Fail, check, fmt.Sprintf("%s names %s, which %s does not have", file, strings.Join(missing, ", "), c.CNIBin),
			"install the program there, or remove it from the file: until then no pod starts"}
	}
	return ok(check, "%s in %s", strings.Join(all, ", "), c.CNIBin)
}

func kubeProxy(*Config) Line {
	const check = "kube-proxy"
	rules, err := ruleset()
	if err == nil && (strings.Contains(rules, "KUBE-SERVICES") || strings.Contains(rules, "kube-proxy {")) {
		return Line{Warn, check, "found its rules", "the switch serves pods, NodePorts and external addresses: if nothing else needs kube-proxy, remove it"}
	}
	return ok(check, "found no rules of it")
}

// ovsSocket is where Open vSwitch's database listens.
const ovsSocket = "/var/run/openvswitch/db.sock"

func openVSwitch(*Config) Line {
	const check = "Open vSwitch"
	_, socket := os.Stat(ovsSocket)
	_, datapath := netlink.LinkByName("ovs-system")
	if socket == nil || datapath == nil {
		return Line{Warn, check, "installed", "remove Antrea's bridge: ovs-vsctl del-br br-int; other bridges may stay"}
	}
	return ok(check, "not installed")
}

// names checks the names of the links that an agent makes.
func names(c *Config) Line {
	const check = "link names"
	for _, name := range []string{c.Gateway, c.Tunnel} {
		if l, err := netlink.LinkByName(name); err == nil && !isLeft(l) {
			return Line{Fail, check, fmt.Sprintf("%s exists, a %s", name, l.Type()), "remove it, or set another gateway.name or tunnel.name"}
		}
	}
	return ok(check, "%s and %s are free", c.Gateway, c.Tunnel)
}

// isLeft says whether a link's agent no longer runs: the link has an agent's alias, and no
// process holds its other end.
func isLeft(l netlink.Link) bool {
	return strings.HasPrefix(l.Attrs().Alias, "antrail ") && l.Attrs().RawFlags&unix.IFF_LOWER_UP == 0
}

// port tries to bind the tunnel's UDP port on all addresses, as the kernel's own tunnels
// do.
func port(c *Config) Line {
	if c.TunnelPort == 0 {
		return ok("UDP port", "the tunnel uses none")
	}
	check := "UDP port " + fmt.Sprint(c.TunnelPort)
	conn, err := net.ListenUDP("udp", &net.UDPAddr{Port: int(c.TunnelPort)})
	if errors.Is(err, unix.EADDRINUSE) {
		return Line{Fail, check, "in use", fmt.Sprintf("ss -ulnp 'sport = %d' names the program; if it names none, a kernel tunnel has the port: ip -d link", c.TunnelPort)}
	}
	if err != nil {
		return Line{Fail, check, err.Error(), "let the agent open it"}
	}
	conn.Close()
	return ok(check, "free")
}

// uplink is the link with the Node's underlay address. If that is not known, it is the link
// of the default route.
func (c *Config) uplink() (netlink.Link, error) {
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP); ok && ip.Unmap() == c.Underlay {
			return netlink.LinkByIndex(a.LinkIndex)
		}
	}
	if c.Underlay.IsValid() {
		return nil, fmt.Errorf("no link has the address %s", c.Underlay)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		if r.LinkIndex > 0 && (r.Dst == nil || r.Dst.IP.IsUnspecified()) {
			return netlink.LinkByIndex(r.LinkIndex)
		}
	}
	return nil, errors.New("there is no default route: give the Node's address by --config")
}

func underlayMTU(c *Config) Line {
	const check = "MTU"
	l, err := c.uplink()
	if err != nil {
		state := Warn
		if c.Underlay.IsValid() {
			state = Fail
		}
		return Line{state, check, err.Error(), "give the Node its address, or correct tunnel.localAddress"}
	}
	mtu, need := l.Attrs().MTU, c.MTU+c.Overhead
	if c.MTU == 0 {
		return ok(check, "%s has %d, %d of it for the tunnel: gateway.mtu is not set", l.Attrs().Name, mtu, c.Overhead)
	}
	if mtu < need {
		return Line{Fail, check, fmt.Sprintf("%s has %d, but pods' packets of %d need %d with the tunnel", l.Attrs().Name, mtu, c.MTU, need), fmt.Sprintf("gateway.mtu: %d", mtu-c.Overhead)}
	}
	return ok(check, "%s has %d, pods' packets of %d need %d with the tunnel", l.Attrs().Name, mtu, c.MTU, need)
}

// sysctl reads a value below /proc/sys; "" if that fails.
func sysctl(path string) string {
	text, err := os.ReadFile("/proc/sys/" + path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// reversePath checks rp_filter. The larger of the link's own value and "all"'s applies.
func reversePath(c *Config) Line {
	const check = "rp_filter"
	l, err := c.uplink()
	if err != nil {
		return Line{Warn, check, err.Error(), "see MTU"}
	}
	name := l.Attrs().Name
	own, all := sysctl("net/ipv4/conf/"+name+"/rp_filter"), sysctl("net/ipv4/conf/all/rp_filter")
	if max(own, all) == "1" {
		return Line{Warn, check, name + " drops packets from sources that it does not lead to (1)", "set 2 if the Node has several uplinks: the agent sets it only on its gateway"}
	}
	return ok(check, "%s of %s, %s of all", own, name, all)
}

func forwarding(*Config) Line {
	const check = "ip_forward"
	if v := sysctl("net/ipv4/ip_forward"); v != "1" {
		return ok(check, "%s; the agent sets it", v)
	}
	return ok(check, "1")
}
