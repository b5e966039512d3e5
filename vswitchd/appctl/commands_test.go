package appctl

import (
	"regexp"
	"slices"
	"strings"
	"testing"
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
	"nocommand",
}

// commandDiffers are what may differ: ages, the kinds of datapaths and ports, counters of the cache,
// and the hidden entries of Open vSwitch's last table.
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
}

// TestCommandsAsOpenVSwitch: commands print what they print on Open vSwitch. Entries of one
// priority have no order.
func TestCommandsAsOpenVSwitch(t *testing.T) {
	r := newRig(t)
	r.install("walk.flows", "walk.groups")
	for _, words := range compared {
		ours, theirs := r.both(strings.Fields(words)...)
		for _, d := range commandDiffers {
			ours, theirs = d.is.ReplaceAllString(ours, d.by), d.is.ReplaceAllString(theirs, d.by)
		}
		got, want := strings.Split(ours, "\n"), strings.Split(theirs, "\n")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("ovs-appctl %s: antrail\n%s\nOpen vSwitch\n%s", words, ours, theirs)
		}
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
