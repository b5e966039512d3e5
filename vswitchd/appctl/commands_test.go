package appctl

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/vswitchd/unixctl"
)

// compared are commands to which both switches answer the same.
var compared = []string{
	"ofproto/list",
	"ofproto/list more",
	"ofproto/trace",
	"ofproto/trace br0",
	"ofproto/trace nobr in_port=1",
	"bridge/dump-flows br0",
	"bridge/dump-flows nobr",
	"bridge/dump-flows",
	"fdb/show br0",
	"fdb/show nobr",
	"fdb/show",
	"dpif/show-dp-features",
	"dpif/show-dp-features nobr",
	"dpif/show",
	"dpif/show more",
	"dpif/dump-dps",
	"dpctl/ct-get-nconns",
	"dpctl/flush-conntrack",
	"dpctl/flush-conntrack zone=5",
	"dpctl/flush-conntrack zone=x",
	"dpctl/flush-conntrack",
	"dpctl/dump-conntrack",
	"dpctl/dump-conntrack zone=5",
	"dpctl/dump-conntrack zone=x",
	"dpctl/dump-conntrack nodp zone=5",
	"dpctl/ct-stats-show",
	"dpctl/ct-stats-show zone=x",
	"dpctl/ct-get-maxconns nodp",
	"dpctl/dump-dps",
	"dpctl/dump-dps more",
	"dpctl/show",
	"fdb/flush",
	"fdb/flush br0",
	"fdb/flush nobr",
	"bond/list", "bond/show", "bond/show p1", "lacp/show", "lacp/show p1", "lacp/show-stats", "lacp/show-stats p1",
	"cfm/show", "cfm/show p1", "bfd/show", "bfd/show p1", "stp/show", "stp/show br0", "rstp/show", "rstp/show br0",
	"mdb/show", "mdb/show br0", "mdb/show nobr", "mdb/flush", "mdb/flush br0", "mdb/flush nobr",
	"fdb/stats-show nobr", "fdb/stats-show br0", "dpctl/dump-flows", "dpctl/dump-flows -m", "dpctl/dump-flows nodp", "dpctl/dump-flows xx=3", "dpctl/dump-flows -x", "dpctl/dump-flows filter=udp", "dpif/dump-flows nobr", "dpif/dump-flows br0",
	"dpctl/ct-get-limits", "dpctl/ct-get-limits zone=5", "dpctl/ct-get-limits zone=5,7", "dpctl/ct-get-limits zone=x", "dpctl/ct-get-limits nodp",
	"dpctl/ipf-get-status nodp", "ofproto/list-tunnels", "dpctl/list-commands", "dpctl/show -s", "revalidator/purge",
	"bond/migrate p1 1 p2", "bond/set-active-member p1 p2", "bond/enable-member p1", "autoattach/status", "autoattach/statistics", "autoattach/show-isid br0",
	"bfd/set-forwarding normal", "bfd/set-forwarding p1 normal", "cfm/set-fault normal", "cfm/set-fault p1 normal", "stp/tcn", "stp/tcn br0", "rstp/tcn", "rstp/tcn br0", "ovs/route/show", "qos/show p1", "qos/show nop", "qos/show-types p1",
	"revalidator/wait", "tnl/arp/show", "tnl/neigh/show", "tnl/ports/show",
	"nocommand",
}

// commandDiffers are the permitted differences: ages, the kinds of datapaths and ports, counters of
// the cache, and the hidden entries of Open vSwitch's last table.
var commandDiffers = []struct {
	is *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`(?m)^table_id=254, .*\n`), ""},
	{regexp.MustCompile(`duration=\d+s`), "duration=…"},
	{regexp.MustCompile(`(netdev|dummy)@`), "DATAPATH@"},
	{regexp.MustCompile(`@ovs-(netdev|dummy)`), "@ovs"},
	{regexp.MustCompile(`hit:\d+ missed:\d+`), "hit:… missed:…"},
	{regexp.MustCompile(`65534/\d+: `), "65534/…: "},
	{regexp.MustCompile(`: \([a-z-]+\)`), ": (…)"},
	{regexp.MustCompile(`(?m)^  port 0: .*\n(    .*\n)*`), ""}, // Open vSwitch's datapath has a port of its own
	{regexp.MustCompile(`flows: \d+`), "flows: …"},
	{regexp.MustCompile(`(errors|dropped):(\d+|\?)`), "$1:…"},
	{regexp.MustCompile(`port (100|65534): (\S+) \([a-z-]+\)`), "port LOCAL: $2 (…)"},
	{regexp.MustCompile(`(port \d+: \S+) \([a-z-]+\)`), "$1 (…)"},
	{regexp.MustCompile(`timeout=\d+`), "timeout=…"},
}

// wantSame gives a command to both switches. Entries of one priority have no order.
func (r *rig) wantSame(words string) {
	r.t.Helper()
	ours, theirs := r.both(strings.Fields(words)...)
	for _, d := range commandDiffers {
		ours, theirs = d.is.ReplaceAllString(ours, d.by), d.is.ReplaceAllString(theirs, d.by)
	}
	got, want := strings.Split(ours, "\n"), strings.Split(theirs, "\n")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.t.Errorf("ovs-appctl %s: antrail\n%s\nOpen vSwitch\n%s", words, ours, theirs)
	}
}

// TestCommandsAsOpenVSwitch: commands print what they print on Open vSwitch.
func TestCommandsAsOpenVSwitch(t *testing.T) {
	r := newRig(t)
	r.install("walk.flows", "walk.groups")
	for _, words := range compared {
		r.wantSame(words)
	}
}

// TestOtherLists: lists with other counts than those of Open vSwitch, and lists that are refused.
func TestOtherLists(t *testing.T) {
	r := newRig(t)
	r.install("connections.flows", "walk.groups")
	for range 3 { // walks to cache
		r.send(2, "udp,dl_src=00:00:00:00:00:02,dl_dst=00:00:00:00:00:01,nw_src=1.1.1.1,nw_dst=2.2.2.2,nw_ttl=64,udp_src=5,udp_dst=80")
	}
	for words, want := range map[string]string{
		"memory/show":          "ports:4 rules:",
		"upcall/show":          "netdev@ovs-netdev:\n  flows         : (current 1)",
		"dpctl/dump-flows -m":  "cached flows cannot be listed",
		"dpif/dump-flows br0":  "cached flows cannot be listed",
		"dpctl/ipf-get-status": "        num frag: 0\n        min v4 frag size: 256\n",
	} {
		if ours, _ := r.both(strings.Fields(words)...); !strings.Contains(ours, want) {
			t.Errorf("ovs-appctl %s: %q, want %q", words, ours, want)
		}
	}
}

// ofDummies are commands that Open vSwitch has for its own tests.
var ofDummies = regexp.MustCompile(`^(netdev-dummy|dpif-dummy|time)/`)

// TestEveryCommand: each command of Open vSwitch's ovs-vswitchd has its usage here, and is either answered
// or refused with a reason.
func TestEveryCommand(t *testing.T) {
	r := newRig(t)
	ours, theirs := r.both("list-commands")
	have := strings.Split(ours, "\n")
	for line := range strings.Lines(theirs) {
		line = strings.TrimRight(line, "\n")
		words := strings.Fields(line)
		ofDaemon := len(words) > 0 && regexp.MustCompile(`^(coverage/|vlog/|memory/|exit|list-commands|version)`).MatchString(words[0]) // package daemon
		if !strings.HasPrefix(line, "  ") || ofDaemon || ofDummies.MatchString(words[0]) {
			continue
		}
		if !slices.ContainsFunc(have, func(h string) bool { return strings.TrimRight(h, " ") == strings.TrimRight(line, " ") }) {
			t.Errorf("Open vSwitch has %q", line)
		}
	}
	for _, c := range refused() {
		if ours, _ := r.both(c.Name); strings.Contains(ours, "not a valid command") || len(strings.Fields(ours)) < 8 {
			t.Errorf("ovs-appctl %s: %q gives no reason", c.Name, ours)
		}
	}
}

// TestAfterPackets: the lists of connections and addresses are as in Open vSwitch after the same
// packets, and after a flush.
func TestAfterPackets(t *testing.T) {
	r := newRig(t)
	r.install("connections.flows", "walk.groups")
	for _, text := range []string{
		"udp,dl_src=00:00:00:00:00:02,dl_dst=00:00:00:00:00:01,nw_src=1.1.1.1,nw_dst=2.2.2.2,nw_ttl=64,udp_src=5,udp_dst=80",
		"tcp,dl_src=00:00:00:00:00:02,dl_dst=00:00:00:00:00:01,nw_src=1.1.1.1,nw_dst=2.2.2.2,nw_ttl=64,tcp_src=5,tcp_dst=80,tcp_flags=syn",
		"icmp,dl_src=00:00:00:00:00:02,dl_dst=00:00:00:00:00:01,nw_src=1.1.1.1,nw_dst=2.2.2.2,nw_ttl=64,icmp_type=8,icmp_code=0",
		"dl_type=0x88cc,dl_src=00:00:00:00:00:05,dl_dst=00:00:00:00:00:01",
	} {
		r.send(2, text)
	}
	for _, words := range []string{
		"fdb/show br0", "fdb/stats-show br0", "dpctl/show -s", "dpctl/ct-get-limits zone=6", "dpctl/dump-conntrack", "dpctl/dump-conntrack -s", "dpctl/dump-conntrack -s zone=6", "dpctl/dump-conntrack zone=7",
		"dpctl/ct-stats-show", "dpctl/ct-stats-show zone=6", "fdb/flush br0", "fdb/show br0", "fdb/stats-show br0", "dpctl/flush-conntrack zone=6", "dpctl/dump-conntrack",
	} {
		r.wantSame(words)
	}
	if ours, _ := r.both("dpctl/dump-conntrack"); !strings.Contains(ours, "mark=3") {
		t.Errorf("no connection is left: %q", ours)
	}
}

// TestFeatures: the features have the names and the order of Open vSwitch's. antrail has no feature
// that Open vSwitch's userspace datapath lacks, and those of conntrack that antrea-agent wants.
func TestFeatures(t *testing.T) {
	r := newRig(t)
	ours, theirs := r.both("dpif/show-dp-features", "br0")
	got, want := strings.Split(ours, "\n"), strings.Split(theirs, "\n")
	if len(got) != len(want) {
		t.Fatalf("antrail\n%s\nOpen vSwitch\n%s", ours, theirs)
	}
	for i := range got {
		name, value, _ := strings.Cut(got[i], ": ")
		theirName, theirValue, _ := strings.Cut(want[i], ": ")
		if name != theirName || value == "Yes" && theirValue != "Yes" {
			t.Errorf("got %q, Open vSwitch %q", got[i], want[i])
		}
	}
	for _, f := range []string{"CT state: Yes", "CT zone: Yes", "CT mark: Yes", "CT label: Yes", "CT state NAT: Yes"} {
		if !slices.Contains(got, f) {
			t.Errorf("%q is not there", f)
		}
	}
}

// FuzzArguments: no arguments make a command fail other than by an error.
func FuzzArguments(f *testing.F) {
	r := newRig(f)
	r.install("walk.flows", "walk.groups")
	commands := map[string]unixctl.Command{}
	for _, c := range (&Switch{Switch: r.sw, Bridge: func() string { return "br0" }}).Commands() {
		commands[c.Name] = c
	}
	for _, words := range append(slices.Clone(compared), "ofproto/trace br0 in_port=1,tcp,ct_state=trk --ct-next trk,new --names -generate", "ofproto/trace br0 in_port=p1 0102") {
		f.Add(words)
	}
	f.Fuzz(func(t *testing.T, words string) {
		args := strings.Fields(words)
		if len(args) == 0 {
			return
		}
		if c, is := commands[args[0]]; is && len(args)-1 >= c.Min && len(args)-1 <= c.Max {
			text, err := c.Run(t.Context(), args[1:])
			if err != nil && (err.Error() == "" || text != "") {
				t.Errorf("%s: %q, %v", words, text, err)
			}
		}
	})
}
