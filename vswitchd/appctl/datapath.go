package appctl

import (
	"context"
	"strings"
)

// features are the lines of dpif/show-dp-features, in the order of Open vSwitch. Controllers read
// them before they write entries: antrea-agent requires conntrack with NAT.
var features = []struct{ name, value string }{
	{"Masked set action", "Yes"},
	{"Tunnel push pop", "Yes"},
	{"Ufid", "No"},            // cached walks have no names
	{"Truncate action", "No"}, // output(max_len=) is refused
	{"Clone action", "Yes"},
	{"Sample nesting", "0"},
	{"Conntrack eventmask", "No"},
	{"Conntrack clear", "Yes"},
	{"Max dp_hash algorithm", "0"}, // groups hash by themselves
	{"Check pkt length action", "No"},
	{"Conntrack timeout policy", "No"},
	{"Explicit Drop action", "Yes"},
	{"Optimized Balance TCP mode", "No"}, // bonds are refused
	{"Conntrack all-zero IP SNAT", "No"},
	{"MPLS Label add", "No"},
	{"Max VLAN headers", "1"},
	{"Max MPLS depth", "0"},
	{"Recirc", "Yes"},
	{"CT state", "Yes"},
	{"CT zone", "Yes"},
	{"CT mark", "Yes"},
	{"CT label", "Yes"},
	{"CT state NAT", "Yes"},
	{"CT orig tuple", "Yes"},
	{"CT orig tuple for IPv6", "Yes"},
	{"IPv6 ND Extension", "No"}, // nd_reserved and nd_options_type are no fields
}

// showFeatures is dpif/show-dp-features.
func (s *Switch) showFeatures(_ context.Context, args []string) (string, error) {
	if s.Bridge() != args[0] {
		return "", errNoBridge
	}
	var b strings.Builder
	for _, f := range features {
		b.WriteString(f.name + ": " + f.value + "\n")
	}
	return b.String(), nil
}
