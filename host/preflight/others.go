package preflight

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Links and rules of other programs that would take or drop pods' packets.

// foreign are links of other networks, by name or by a name's beginning and a star.
var foreign = []struct{ link, whose string }{
	{"cni0", "bridge or Flannel"}, {"flannel*", "Flannel"}, {"cali*", "Calico"}, {"vxlan.calico", "Calico"}, {"wireguard.cali", "Calico"},
	{"cilium_*", "Cilium"}, {"lxc*", "Cilium"}, {"weave", "Weave"}, {"kube-bridge", "kube-router"}, {"ovn-k8s-*", "OVN-Kubernetes"},
	{"genev_sys_*", "Open vSwitch"}, {"kube-ipvs0", "kube-proxy in mode ipvs"},
}

// foreignLinks finds links of another network. Two networks on a Node conflict over pods,
// routes and Services.
func foreignLinks(*Config) Line {
	const check = "other networks"
	links, err := netlink.LinkList()
	if err != nil {
		return Line{Warn, check, err.Error(), "let the agent list links"}
	}
	var found []string
	for _, l := range links {
		for _, f := range foreign {
			if yes, _ := filepath.Match(f.link, l.Attrs().Name); yes {
				found = append(found, fmt.Sprintf("%s (%s)", l.Attrs().Name, f.whose))
				break
			}
		}
	}
	if len(found) > 0 {
		return Line{Warn, check, "links " + listed(found), "remove that network with its links and routes, and recreate its pods"}
	}
	return ok(check, "no links of other networks")
}

// listed is the first few of a list, and how many more there are.
func listed(all []string) string {
	const most = 4
	if more := len(all) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), more)
	}
	return strings.Join(all, ", ")
}

// overlaps finds another program's route into the pods' ranges, or an address in them.
func overlaps(c *Config) Line {
	const check = "pods' ranges"
	if len(c.PodCIDRs) == 0 {
		return ok(check, "from the Node object; --config can set others")
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return Line{Warn, check, err.Error(), "let the agent list routes"}
	}
	for _, r := range routes {
		to, ok := prefixOf(&r)
		if !ok || r.LinkIndex == 0 || !slices.ContainsFunc(c.PodCIDRs, to.Overlaps) {
			continue
		}
		name := fmt.Sprint("link ", r.LinkIndex)
		if l, err := netlink.LinkByIndex(r.LinkIndex); err == nil {
			name = l.Attrs().Name
		}
		if name == c.Gateway {
			continue // names reports it
		}
		return Line{Fail, check, fmt.Sprintf("a route to %v by %s overlaps the pods' ranges %v", to, name, c.PodCIDRs), "remove that route or address, or set other podCIDRs for the Node"}
	}
	return ok(check, "%v: no other program's routes", c.PodCIDRs)
}

// prefixOf is a route's destination; not ok for a default route.
func prefixOf(r *netlink.Route) (p netip.Prefix, ok bool) {
	if r.Dst == nil {
		return p, false
	}
	a, ok := netip.AddrFromSlice(r.Dst.IP)
	bits, _ := r.Dst.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), bits), ok && bits > 0
}

// hooked finds base chains in the text of a ruleset. The lines before it name table and
// chain.
var hooked = regexp.MustCompile(`^type filter hook (input|forward) .*policy drop;`)

// firewall finds chains that drop by policy. Our accept ends only our own chain: the packet
// still passes every other chain at the hook.
func firewall(c *Config) Line {
	const check = "firewall"
	rules, err := ruleset()
	if err != nil {
		return ok(check, "see nftables")
	}
	if found := dropping(rules); len(found) > 0 {
		accept := fmt.Sprintf("in forward, let it accept packets from and to %s", c.Gateway)
		if c.TunnelPort > 0 {
			accept += fmt.Sprintf("; in input, UDP port %d", c.TunnelPort)
		}
		return Line{Warn, check, listed(found) + " drops by policy", accept + "; in input, packets from " + c.Gateway}
	}
	if text, err := os.ReadFile("/proc/self/net/ip_tables_names"); err == nil && strings.Contains(string(text), "filter") {
		return Line{Warn, check, "iptables-legacy has rules, which this check does not read", "iptables-legacy -S: let FORWARD accept " + c.Gateway + ", or move to iptables-nft"}
	}
	return ok(check, "no chain drops by policy")
}

// dropping are the base chains at input and forward with policy drop, as family, table and
// chain.
func dropping(rules string) (found []string) {
	var table, chain string
	for line := range strings.Lines(rules) {
		line = strings.TrimSpace(line)
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "table":
			table = strings.TrimSuffix(rest, " {")
		case "chain":
			chain = strings.TrimSuffix(rest, " {")
		case "type":
			if hooked.MatchString(line) {
				found = append(found, "chain "+table+" "+chain)
			}
		}
	}
	return found
}

// rulesLikeOurs has each kind of expression of the agent's rules (package host), so that a
// kernel without one of them refuses it.
const rulesLikeOurs = `
table inet antrail-check {
	set ports { type ipv4_addr . inet_proto . inet_service; }
	set pods { type ipv6_addr; flags interval; }
	map marks { type ether_addr : mark; }
	map egress { type mark : ipv4_addr; }
	chain raw { type filter hook prerouting priority raw; meta l4proto 17 th dport 6081 fib daddr type local notrack; }
	chain mangle { type filter hook prerouting priority mangle; meta mark set ether saddr map @marks; ct mark set meta mark and 0x40000000; }
	chain services { type nat hook prerouting priority dstnat; ip daddr . meta l4proto . th dport @ports dnat ip to 169.254.0.252; }
	chain out { type nat hook postrouting priority srcnat; snat ip to meta mark and 0xff map @egress; ip6 daddr @pods masquerade; }
}
table netdev antrail-check {
	chain gateway { type filter hook egress device lo priority filter; ether type { ip, ip6 } ether saddr set 02:61:00:00:00:01; }
}
`

// expressions checks rulesLikeOurs with the kernel, without installing it (nft --check).
func expressions(*Config) Line {
	const check = "nftables rules"
	nft := exec.Command("nft", "--check", "--file", "-")
	nft.Stdin = strings.NewReader(rulesLikeOurs)
	if out, err := nft.CombinedOutput(); err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		if said == "" {
			said = err.Error()
		}
		return Line{Fail, check, said, "a kernel (5.16 or newer) with CONFIG_NF_TABLES_INET, _NETDEV, NFT_NAT, NFT_MASQ, NFT_CT, NFT_FIB_INET and NETFILTER_EGRESS"}
	}
	return ok(check, "sets, maps, NAT, fib, egress hook")
}

// settings checks whether sysctls can be written. In a container they are often read-only.
func settings(c *Config) Line {
	const check = "sysctls"
	root := "/proc/sys/net"
	if _, err := os.Stat("/host" + root); err == nil {
		root = "/host" + root
	}
	if err := unix.Access(root+"/ipv4/ip_forward", unix.W_OK); err != nil {
		return Line{Fail, check, fmt.Sprintf("%s: %v", root, err), "mount the Node's /proc/sys/net at /host/proc/sys/net, as deploy/ does"}
	}
	return ok(check, "can be set in %s", root)
}
