package appctl

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
)

// traces are arguments of ofproto/trace behind the bridge, separated by blanks.
var traces = []string{
	"in_port=1,tcp,nw_ttl=64,dl_dst=00:00:00:00:00:01,nw_src=1.1.1.1,tp_dst=80",
	"in_port=1,tcp,nw_ttl=64,dl_dst=00:00:00:00:00:01,nw_src=1.1.1.1,tp_dst=80,reg4=3,ct_mark=5,metadata=9",
	"in_port=p1,udp,nw_ttl=64,nw_src=1.1.1.1,udp_dst=80 --names",
	"in_port=1,udp,nw_ttl=64,nw_src=1.1.1.1,udp_dst=80",
	"in_port=2,udp,nw_ttl=64,nw_src=1.1.1.1,nw_dst=2.2.2.2,udp_dst=80",
	"in_port=2,tcp,nw_ttl=64,nw_src=1.1.1.1,nw_dst=2.2.2.2,tp_dst=80 --ct-next trk,est",
	"in_port=2,tcp,nw_ttl=64,nw_src=1.1.1.1,nw_dst=2.2.2.2,tp_dst=81 --ct-next trk,new",
	"in_port=2,tcp,nw_ttl=64,nw_src=1.1.1.1,nw_dst=2.2.2.2,tp_dst=81 --ct-next inv,trk",
	"in_port=3,tcp,nw_ttl=64,nw_src=1.1.1.1,nw_dst=2.2.2.2,tp_dst=80",
	"in_port=3,tcp,nw_ttl=2,nw_tos=32,nw_src=1.1.1.1,nw_dst=2.2.2.2,tp_dst=80,tcp_flags=syn",
	"in_port=3,udp,nw_ttl=64,nw_src=1.1.1.1,nw_dst=2.2.2.2,udp_dst=80",
	"in_port=3,icmp,nw_ttl=64,nw_src=1.1.1.1,nw_dst=2.2.2.2,icmp_type=8",
	"in_port=3,sctp,nw_ttl=64",
	"in_port=3,arp,arp_op=1,dl_dst=00:00:00:00:00:01,arp_spa=1.1.1.1,arp_sha=00:00:00:00:00:05",
	"in_port=3,udp6,nw_ttl=7",
	"in_port=3,tcp6,nw_ttl=7,ipv6_src=fe80::1 --names",
	"in_port=3,dl_type=0x88cc,dl_dst=00:00:00:00:00:01",
	"in_port=3,dl_type=0x88cd,dl_dst=00:00:00:00:00:01",
	"in_port=3,dl_type=0x88cd,dl_dst=00:00:00:00:00:01 --names",
	"in_port=LOCAL,dl_type=0x88cd,dl_vlan=5,dl_dst=00:00:00:00:00:01",
	"in_port=LOCAL,dl_type=0x88cd,dl_dst=ff:ff:ff:ff:ff:ff",
	"in_port=1,ip,nw_ttl=9,nw_proto=200",
	"in_port=1 000000000001000000000002080045000014000000004011000001020304050607",
	"in_port=2 00000000000100000000000208004500001400000000401100000102030405060708 --names",
	"in_port=LOCAL,icmp6,nw_ttl=255,dl_dst=00:00:00:00:00:01,icmpv6_type=135,nd_target=fe80::1",
	"in_port=LOCAL,icmp6,nw_ttl=255,dl_dst=00:00:00:00:00:01,icmpv6_type=136,icmpv6_code=0,nd_target=fe80::1,nd_tll=00:00:00:00:00:07",
	"in_port=1,dl_type=0x88ce,dl_dst=00:00:00:00:00:01",
	"in_port=2,dl_type=0x88ce,dl_dst=00:00:00:00:00:01",
	"in_port=3,dl_type=0x88ce,dl_dst=00:00:00:00:00:01",
	"in_port=LOCAL,udp,nw_ttl=64",
	"in_port=LOCAL,udp,nw_ttl=64 --ct-next trk,new --ct-next trk,est --ct-next trk,est,rpl",
	"in_port=LOCAL,udp,nw_ttl=64 --ct-next trk,new --ct-next trk,est --ct-next trk,est --ct-next trk,est,rpl --ct-next trk,est,rpl",
	"in_port=LOCAL,udp,nw_ttl=64 --ct-next trk,est --ct-next trk,est --ct-next trk,est,rpl",
	"in_port=LOCAL,udp,nw_ttl=64 --ct-next trk,est --ct-next trk,rel --ct-next trk,est,rpl",
	"in_port=3,tcp,nw_ttl=1",
	"in_port=3,tcp6,nw_ttl=1",
	"in_port=1,ip zz",
	"in_port=1 00",
	"in_port=1,tcp --ct-next foo",
	"in_port=1,tcp --foo",
}

// traceDiffers are the permitted differences of traces. The masks of antrail's cache differ from
// those in the line "Megaflow". The numbers of passes depend on earlier traces. The datapath number
// of the bridge's own port is 65534 in antrail and 100 in Open vSwitch. A bucket's score is a hash.
var traceDiffers = []struct {
	is *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`(?m)^Megaflow: .*\n`), ""},
	{regexp.MustCompile(`(?m)^This flow is handled by the userspace slow path because it:\n(\s*- .*\n)*`), ""},
	{regexp.MustCompile(`recirc(\(|_id=)(0x)?[0-9a-f]+`), "recirc${1}N"},
	{regexp.MustCompile(`(?m)^ *-> bucket \d+: score \d+\n`), ""},
}

// traced is a trace in a form that can be compared. A flood has no order.
func traced(text string) string {
	for _, d := range traceDiffers {
		text = d.is.ReplaceAllString(text, d.by)
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if actions, is := strings.CutPrefix(l, "Datapath actions: "); is {
			lines[i] = "Datapath actions: " + strings.Join(portsInOrder(strings.Split(actions, ",")), ",")
		}
	}
	return strings.Join(lines, "\n")
}

var portWord = regexp.MustCompile(`^(\d+|LOCAL|p\d|br0)$`)

// portsInOrder sorts ports that stand next to each other.
func portsInOrder(words []string) []string {
	for i := 0; i < len(words); i++ {
		if words[i] == "65534" || words[i] == "100" {
			words[i] = "LOCAL"
		}
	}
	for i := 0; i < len(words); i++ {
		end := i
		for end < len(words) && portWord.MatchString(words[end]) {
			end++
		}
		slices.Sort(words[i:end])
		i = end
	}
	return words
}

// TestTraceAsOpenVSwitch: ofproto/trace prints what Open vSwitch prints.
func TestTraceAsOpenVSwitch(t *testing.T) {
	r := newRig(t)
	r.install("walk.flows", "walk.groups")
	for _, words := range traces {
		args := append([]string{"ofproto/trace", "br0"}, strings.Fields(words)...)
		ours, theirs := r.both(args...)
		if got, want := traced(ours), traced(theirs); got != want {
			t.Errorf("ofproto/trace br0 %s: antrail\n%s\nOpen vSwitch\n%s", words, got, want)
		}
	}
}

// TestTraceOptionsAsOpenVSwitch: a trace follows entries that use options of Geneve, and shows what they are.
func TestTraceOptionsAsOpenVSwitch(t *testing.T) {
	r := newRig(t)
	if _, err := r.ovs.Ofctl("add-tlv-map", "{class=0x102,type=0x80,len=4}->tun_metadata0,{class=0xffff,type=0,len=8}->tun_metadata3"); err != nil {
		t.Fatal(err)
	}
	if err := r.names.SetTunnelOptions([]flow.TunnelOption{{Index: 0, Class: 0x102, Type: 0x80, Size: 4}, {Index: 3, Class: 0xffff, Size: 8}}); err != nil {
		t.Fatal(err)
	}
	r.install("options.flows", "walk.groups")
	for _, options := range []string{"tun_metadata0=0xa", "tun_metadata0=0xb", "tun_metadata0=0xa,tun_metadata3=0x123", "reg0=0", "tun_metadata0=0"} {
		ours, theirs := r.both("ofproto/trace", "br0", "in_port=1,udp,nw_ttl=64,tun_src=1.2.3.4,tun_dst=1.2.3.5,"+options)
		if got, want := traced(ours), traced(theirs); got != want {
			t.Errorf("%s: antrail\n%s\nOpen vSwitch\n%s", options, got, want)
		}
	}
}
