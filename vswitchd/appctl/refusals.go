package appctl

import (
	"math"
	"strings"

	"github.com/antrail/antrail/vswitchd/unixctl"
)

// Commands of Open vSwitch's ovs-vswitchd for features that antrail lacks are refused with the
// reason. A command that Open vSwitch does not have either is "not a valid command".

// refusal is a reason, with the refused commands and their usage.
type refusal struct {
	why      string
	commands []string
}

var refusals = []refusal{
	{"antrail's datapath is its switch: ovs-ofctl changes entries, and ovs-vsctl ports", []string{
		"dpctl/add-dp dp [iface...]", "dpctl/del-dp dp", "dpctl/add-if dp iface...", "dpctl/del-if dp iface...", "dpctl/set-if dp iface...",
		"dpctl/add-flow [dp] flow actions", "dpctl/add-flows [dp] file", "dpctl/mod-flow [dp] flow actions", "dpctl/mod-flows [dp] file",
		"dpctl/del-flow [dp] flow", "dpctl/del-flows [dp] [file]", "dpctl/parse-actions actions", "dpctl/normalize-actions actions",
		"dpif/set-dp-features bridge",
	}},
	{"each worker has its own cache, which cannot be listed or resized: antrail dump-cache counts cached walks", []string{
		"dpctl/get-flow [dp] ufid", "dpctl/cache-get-size [dp]", "dpctl/cache-set-size dp cache <size>",
	}},
	{"workers walk the tables themselves, so there are no upcalls", []string{
		"upcall/disable-megaflows", "upcall/disable-ufid", "upcall/enable-megaflows", "upcall/enable-ufid", "upcall/set-flow-limit flow-limit-number",
	}},
	{"antrail has workers, not PMD threads: antrail dump-workers shows what they do", []string{
		"dpif-netdev/bond-show [dp]", "dpif-netdev/dpif-impl-get", "dpif-netdev/dpif-impl-set dpif_implementation_name",
		"dpif-netdev/miniflow-parser-get", "dpif-netdev/miniflow-parser-set [-pmd core] miniflow_implementation_name [study_pkt_cnt]",
		"dpif-netdev/pmd-perf-log-set on|off [-b before] [-a after] [-e|-ne] [-us usec] [-q qlen]",
		"dpif-netdev/pmd-perf-show [-nh] [-it iter-history-len] [-ms ms-history-len] [-pmd core] [dp]", "dpif-netdev/pmd-rxq-rebalance [dp]",
		"dpif-netdev/pmd-rxq-show [-pmd core] [-secs secs] [dp]", "dpif-netdev/pmd-stats-clear [-pmd core] [dp]", "dpif-netdev/pmd-stats-show [-pmd core] [dp]",
		"dpif-netdev/subtable-lookup-info-get", "dpif-netdev/subtable-lookup-prio-set [lookup_func] [prio]",
		"odp-execute/action-impl-set name", "odp-execute/action-impl-show",
	}},
	{"the limits of connections are settings of antrail switch (--settings, conntrack)", []string{
		"dpctl/ct-set-maxconns [dp] maxconns", "dpctl/ct-set-limits [dp] [default=L] [zone=N,limit=L]...", "dpctl/ct-del-limits [dp] zone=N1[,N2]...",
	}},
	{"the index of connections has no buckets: antrail conntrack stats counts its chains", []string{"dpctl/ct-bkts [dp] [gt=N]"}},
	{"TCP sequence numbers are always checked; segments outside the window pass, and change nothing", []string{
		"dpctl/ct-disable-tcp-seq-chk [dp]", "dpctl/ct-enable-tcp-seq-chk [dp]", "dpctl/ct-get-tcp-seq-chk [dp]",
	}},
	{"the limits of waiting fragments are fixed: dpctl/ipf-get-status shows them", []string{
		"dpctl/ipf-set-disabled [dp] v4|v6", "dpctl/ipf-set-enabled [dp] v4|v6", "dpctl/ipf-set-max-nfrags [dp] maxfrags", "dpctl/ipf-set-min-frag [dp] v4|v6 minfragment",
	}},
	{"the kernel forwards connections by eBPF programs, not by flows of cards: antrail dump-ports counts their packets", []string{"dpctl/offload-stats-show [dp]"}},
	{"addresses are learned from packets only, and their counters are not reset", []string{"fdb/add bridge port vlan mac", "fdb/del bridge vlan mac", "fdb/stats-clear [bridge]"}},
	{"tunnels leave by the routes and neighbours of the kernel: use ip route and ip neigh", []string{
		"ovs/route/add ip_addr/prefix_len out_br_name [gw] [pkt_mark=mark]", "ovs/route/del ip_addr/prefix_len [pkt_mark=mark]", "ovs/route/lookup ip_addr [pkt_mark=mark]",
		"tnl/arp/aging [SECS]", "tnl/arp/flush", "tnl/arp/set BRIDGE IP MAC", "tnl/neigh/aging [SECS]", "tnl/neigh/flush", "tnl/neigh/set BRIDGE IP MAC",
		"tnl/egress_port_range min max",
	}},
	{"bonds are not supported", []string{"bond/hash mac [vlan] [basis]"}},
	{"the bridge connects to its controllers again without a command", []string{"bridge/reconnect [bridge]"}},
	{"ofproto/trace walks an entry's actions; the actions of a packet-out are not traced", []string{
		"ofproto/trace-packet-out [-consistent] {[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet] actions",
	}},
}

// refused are the commands of refusals.
func refused() (all []unixctl.Command) {
	for _, r := range refusals {
		for _, c := range r.commands {
			name, usage, _ := strings.Cut(c, " ")
			all = append(all, unixctl.Command{Name: name, Usage: usage, Max: math.MaxInt, Run: unixctl.Refuse(r.why)})
		}
	}
	return all
}
