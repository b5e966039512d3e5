package ofserver

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/ovstest"
)

// step is a command of ovs-ofctl, given to antrail and to Open vSwitch.
type step struct {
	// versions are those that it is given in, "" for all: "15" or "13 14 15".
	versions string
	// options, command and args; BRIDGE stands behind the command.
	options, command string
	args             []string
}

// steps are given one after the other, so each begins with what those before left.
var steps = []step{
	{"", "", "show", nil},
	{"13 14 15", "", "add-meter", []string{"meter=1 pktps burst stats bands=type=drop rate=100 burst_size=200"}},
	{"13 14 15", "", "add-meter", []string{"meter=2 kbps bands=type=drop rate=1000"}},
	{"13 14 15", "", "add-meter", []string{"meter=2 kbps bands=type=drop rate=1000"}}, // it is there
	{"13 14 15", "", "mod-meter", []string{"meter=2 kbps bands=type=drop rate=2000"}},
	{"13 14 15", "", "mod-meter", []string{"meter=9 kbps bands=type=drop rate=2000"}}, // there is none
	{"13 14 15", "", "dump-meters", nil},
	{"13 14 15", "", "dump-meter", []string{"meter=1"}},
	{"13 14 15", "", "meter-stats", nil},
	{"", "", "add-group", []string{"group_id=1,type=select,bucket=bucket_id:5,weight:10,output:1,bucket=bucket_id:6,weight:20,set_field:1->reg0,output:2"}},
	{"", "", "add-group", []string{"group_id=2,type=all,bucket=output:1,bucket=output:2"}},
	{"", "", "add-group", []string{"group_id=3,type=ff,bucket=watch_port:1,output:1"}},
	{"", "", "add-group", []string{"group_id=3,type=all,bucket=output:1"}}, // it is there
	{"", "", "mod-group", []string{"group_id=2,type=all,bucket=output:2"}},
	{"", "", "mod-group", []string{"group_id=77,type=all,bucket=output:2"}}, // there is none
	{"", "--may-create", "mod-group", []string{"group_id=5,type=all,bucket=output:2"}},
	{"10 15", "", "insert-buckets", []string{"group_id=1,command_bucket_id=last,bucket=bucket_id:9,weight:5,output:3"}},
	{"10 15", "", "insert-buckets", []string{"group_id=1,command_bucket_id=5,bucket=bucket_id:7,weight:5,output:3"}},
	{"10 15", "", "insert-buckets", []string{"group_id=1,command_bucket_id=first,bucket=bucket_id:1,weight:5,output:3"}},
	{"10 15", "", "remove-buckets", []string{"group_id=1,command_bucket_id=9"}},
	{"10 15", "", "remove-buckets", []string{"group_id=1,command_bucket_id=first"}},
	{"", "", "dump-groups", nil},
	{"10 15", "", "dump-groups", []string{"1"}},
	{"", "", "add-flows", []string{"ENTRIES"}},
	{"", "", "dump-flows", nil},
	{"", "--no-stats", "dump-flows", nil},
	{"", "", "dump-flows", []string{"table=2,ip"}},
	{"", "", "dump-flows", []string{"cookie=0x123/-1,out_port=2"}},
	{"13 14 15", "", "dump-flows", []string{"out_group=1"}},
	{"", "", "dump-aggregate", nil},
	{"", "", "dump-aggregate", []string{"table=1"}},
	{"", "", "dump-tables", nil},
	{"", "", "diff-flows", []string{"ENTRIES"}},
	{"", "", "mod-flows", []string{"tcp,actions=output:3"}},
	{"", "", "mod-flows", []string{"cookie=0x123/-1,udp6,actions=output:3"}},
	{"", "--strict", "mod-flows", []string{"table=0,priority=100,in_port=1,tcp,tp_dst=80,actions=output:1"}},
	{"10 13 15", "", "mod-flows", []string{"table=9,priority=3,ip,nw_dst=9.9.9.9,actions=output:1"}}, // only 1.0 adds it
	{"", "", "add-flow", []string{"cookie=5,send_flow_rem,check_overlap,priority=3,ip,actions=drop"}},
	{"", "", "add-flow", []string{"check_overlap,priority=3,ip,nw_dst=1.2.3.4,actions=drop"}}, // it overlaps
	{"", "", "add-flow", []string{"ip,actions=group:99"}},                                     // there is none
	{"15", "", "add-flow", []string{"ip,actions=meter:99"}},
	{"", "--no-stats", "dump-flows", nil},
	{"", "--strict", "del-flows", []string{"table=0,priority=100,in_port=1,tcp,tp_dst=80"}},
	{"", "", "del-flows", []string{"table=1,out_port=FLOOD"}},
	{"", "", "del-flows", []string{"cookie=0x9/0xf"}},
	{"13 14 15", "", "del-flows", []string{"out_group=1"}},
	{"", "--no-stats", "dump-flows", nil},
	{"", "", "replace-flows", []string{"ENTRIES"}},
	{"", "--no-stats", "dump-flows", nil},
	{"", "", "del-flows", []string{"table=2"}},
	{"", "--bundle", "replace-flows", []string{"ENTRIES"}},
	{"", "--no-stats", "dump-flows", nil},
	{"", "", "del-flows", nil},
	{"", "--bundle", "add-flows", []string{"ENTRIES"}},
	{"", "", "dump-flows", nil},
	{"", "", "dump-ports", nil},
	{"", "", "dump-ports", []string{"1"}},
	{"", "", "dump-ports", []string{"77"}},
	{"", "", "dump-ports-desc", nil},
	{"15", "", "dump-ports-desc", []string{"2"}},
	{"", "", "get-frags", nil},
	{"", "", "packet-out", []string{"in_port=1 packet=000000000001000000000002080045000014000000004011000001020304050607 actions=output:2"}},
	{"", "", "packet-out", []string{"in_port=1 packet=000000000001000000000002080045000014000000004011000001020304050607 actions=load:0xa->NXM_OF_IP_TOS[2..7],output:2"}},
	{"15", "", "packet-out", []string{"in_port=1 reg0=5 metadata=0x7 tun_id=3 packet=000000000001000000000002080045000014000000004011000001020304050607 actions=output:reg0[0..1]"}},
	{"", "", "probe", nil},
	{"15", "", "dump-table-desc", nil},
	{"", "", "set-frags", []string{"normal"}},
	{"", "", "ct-flush-zone", []string{"5"}},
	{"", "", "ct-flush", nil},
	{"", "", "ct-flush", []string{"zone=5"}},
	{"10 15", "", "mod-port", []string{"p1", "up"}},
	{"10 15", "", "mod-port", []string{"p9", "up"}}, // there is none
	{"", "", "mod-port", []string{"p1", "no-flood"}},
	{"", "", "mod-port", []string{"p2", "no-forward"}},
	{"", "", "mod-port", []string{"p2", "no-packet-in"}},
	{"", "", "mod-port", []string{"p3", "no-receive"}},
	{"", "", "dump-ports-desc", nil},
	{"10", "", "show", nil},
	{"", "", "mod-port", []string{"p1", "flood"}},
	{"", "", "mod-port", []string{"p3", "receive"}},
	{"", "", "mod-port", []string{"p3", "down"}},
	{"", "", "dump-ports-desc", nil},
	{"", "", "mod-port", []string{"p3", "up"}},
	{"", "", "mod-port", []string{"p2", "forward"}},
	{"", "", "dump-ports-desc", nil},
	{"", "", "add-groups", []string{"GROUPS"}},
	{"", "", "dump-ipfix-bridge", nil},
	{"", "", "dump-tlv-map", nil},
	{"", "", "add-tlv-map", []string{"{class=0x102,type=0x80,len=4}->tun_metadata0,{class=0xffff,type=0,len=8}->tun_metadata3"}},
	{"", "", "add-tlv-map", []string{"{class=0x103,type=0x80,len=4}->tun_metadata0"}}, // the field is mapped
	{"", "", "add-tlv-map", []string{"{class=0x102,type=0x80,len=4}->tun_metadata1"}}, // the option is
	{"", "", "add-tlv-map", []string{"{class=0x104,type=1,len=5}->tun_metadata4"}},
	{"", "", "add-tlv-map", []string{"{class=0x104,type=1,len=128}->tun_metadata4"}},
	{"", "", "add-tlv-map", []string{"{class=0x104,type=1,len=4}->tun_metadata64"}},
	{"", "", "dump-tlv-map", nil},
	{"", "", "add-flow", []string{"table=200,priority=1,tun_metadata0=0x1234,actions=drop"}},
	{"", "", "add-flow", []string{"table=200,priority=2,tun_metadata0=0x1234/0xffff,tun_metadata3=0x123456789abcdef,actions=drop"}},
	{"", "", "add-flow", []string{"table=200,priority=3,tun_metadata0=0x12345678/0xffffffff,actions=drop"}}, // the whole option
	{"", "", "add-flow", []string{"table=200,priority=4,tun_metadata0,ip,actions=drop"}},                    // any value
	{"", "", "add-flow", []string{"table=200,priority=5,tun_metadata0=0,actions=drop"}},
	{"", "", "add-flow", []string{"table=200,priority=6,tun_metadata3=0x5/0xff,actions=set_field:0x1234->tun_metadata0,set_field:0->tun_metadata3,output:2"}},
	{"15", "", "add-flow", []string{"table=200,priority=7,actions=set_field:0x20000/0xf0000->tun_metadata0,output:2"}},
	{"", "", "add-flow", []string{"table=200,priority=8,actions=move:NXM_NX_TUN_METADATA0[16..30]->NXM_NX_REG14[0..14],load:0x5->NXM_NX_TUN_METADATA0[0..15],output:NXM_NX_TUN_METADATA3[0..15]"}},
	{"", "", "add-flow", []string{"table=200,priority=9,actions=learn(table=201,NXM_NX_TUN_METADATA0[0..31],load:NXM_NX_REG0[]->NXM_NX_TUN_METADATA0[0..31])"}},
	{"", "", "add-flow", []string{"table=200,priority=10,tun_metadata1=5,actions=drop"}}, // no option has the field
	{"", "", "add-flow", []string{"table=200,priority=10,tun_metadata63=5,actions=drop"}},
	{"", "", "add-flow", []string{"table=200,priority=10,actions=set_field:5->tun_metadata1,output:2"}},
	{"", "", "add-flow", []string{"table=200,priority=10,actions=move:NXM_NX_TUN_METADATA0[16..40]->NXM_NX_REG14[0..24],output:2"}}, // beyond the option
	{"", "", "dump-flows", []string{"tun_metadata0=0x1234"}},
	{"", "", "dump-flows", []string{"tun_metadata1=0x1234"}},
	{"", "--no-stats", "dump-flows", []string{"table=200"}},
	{"", "--strict", "mod-flows", []string{"table=200,priority=1,tun_metadata0=0x1234,actions=output:1"}},
	{"", "", "del-flows", []string{"table=200,tun_metadata3=0x5/0xff"}},
	{"13 14 15", "--bundle", "add-flow", []string{"table=200,priority=11,tun_metadata0=0x1,actions=drop"}},
	{"", "--no-stats", "dump-flows", []string{"table=200"}},
	{"", "", "del-tlv-map", []string{"{class=0x102,type=0x80,len=4}->tun_metadata0"}}, // entries use it
	{"", "", "del-tlv-map", nil},
	{"", "", "dump-tlv-map", nil},
	{"", "", "del-flows", []string{"table=200"}},
	{"", "", "add-group", []string{"group_id=9,type=all,bucket=set_field:5->tun_metadata0,output:1"}},
	{"10 15", "", "dump-groups", []string{"9"}},
	{"", "", "del-groups", []string{"group_id=9"}},
	{"", "", "del-tlv-map", []string{"{class=0x102,type=0x80,len=4}->tun_metadata0"}},
	{"", "", "del-tlv-map", []string{"{class=0x102,type=0x80,len=4}->tun_metadata9"}}, // it is not mapped
	{"", "", "dump-tlv-map", nil},
	{"", "", "del-tlv-map", nil},
	{"", "", "dump-tlv-map", nil},
	{"", "", "queue-stats", []string{"77"}}, // there is none
	{"", "", "queue-stats", []string{"1", "5"}},
	{"14 15", "", "queue-get-config", []string{"1", "5"}},
	{"", "", "dump-group-features", nil},
	{"13 14 15", "", "meter-features", nil},
	{"", "", "dump-group-stats", []string{"1"}},
	{"", "", "dump-group-stats", []string{"99"}},
	{"13 14 15", "", "dump-group-stats", nil},
	{"", "", "del-groups", []string{"group_id=2"}},
	{"", "", "del-groups", nil},
	{"", "--no-stats", "dump-flows", nil}, // entries that sent to them have gone
	{"13 14 15", "", "del-meter", []string{"meter=1"}},
	{"13 14 15", "", "del-meters", nil},
	{"", "--no-stats", "dump-flows", nil},
	{"", "", "del-flows", nil},
	{"", "", "dump-flows", nil},
}

// differs are the permitted differences of outputs: numbers of transactions and datapaths, times,
// addresses, counters, and the space for options of Geneve.
var differs = regexp.MustCompile(`xid=0x[0-9a-f]+|duration[=:][0-9.]+s|dpid:[0-9a-f]+|addr:[0-9a-f:]+|(drop|errs|frame|over|crc|coll)=[0-9?]+|` +
	`[0-9T:-]+Z\|[0-9]+\||lookup=[0-9]+, matched=[0-9]+|unix:[^ ]*|/tmp/[^ :]*|tx pkts=[0-9]+, bytes=[0-9]+|, idle_age=[0-9]+|ref_count=[0-9]+|max_meter:[0-9]+|max option space=[0-9]+|max fields=[0-9]+`)

// lacks are the parts that only Open vSwitch prints. It has queues and MPLS, shows the flag
// check_overlap of an entry, and its dummy ports have their own counters.
var lacks = regexp.MustCompile(`enqueue | set_mpls_ttl dec_mpls_ttl push_mpls pop_mpls set_queue|check_overlap |(?m:^ *(CUSTOM Statistics|rx_(custom|q0)_.*)\n)`)

// said is the output of a tool in a form that can be compared. Lines that begin with a blank have no
// order.
func said(text string) []string {
	text = differs.ReplaceAllString(lacks.ReplaceAllString(text, ""), "…")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	if strings.HasPrefix(lines[0], "table=") { // entries without a headline
		lines[0] = " " + lines[0]
		slices.Sort(lines)
	}
	slices.Sort(lines[min(1, len(lines)):])
	return lines
}

// TestAsOpenVSwitch gives the same commands of ovs-ofctl to antrail and to Open vSwitch, in four
// versions. Both say the same.
func TestAsOpenVSwitch(t *testing.T) {
	for _, version := range []string{"10", "13", "14", "15"} {
		t.Run("OpenFlow"+version, func(t *testing.T) {
			ovs := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1}, ovstest.Port{Name: "p2", Number: 2}, ovstest.Port{Name: "p3", Number: 3})
			ours := newRig(t)
			for _, s := range steps {
				if s.versions != "" && !slices.Contains(strings.Fields(s.versions), version) {
					continue
				}
				wantSame(t, version, &s, ours.dir, ovs.Dir)
			}
		})
	}
}

func wantSame(t *testing.T, version string, s *step, ours, ovs string) {
	t.Helper()
	args := append([]string{"-OOpenFlow" + version}, strings.Fields(s.options)...)
	args = append(args, s.command, bridge)
	for _, a := range s.args {
		if a == "GROUPS" {
			a = "testdata/groups.txt"
		}
		if a == "ENTRIES" {
			a = "testdata/entries" + version + ".flows"
		}
		args = append(args, a)
	}
	got, gotOK := ofctl(t, ours, args...)
	want, wantOK := ofctl(t, ovs, args...)
	name := fmt.Sprintf("ovs-ofctl %s", strings.Join(args, " "))
	if gotOK != wantOK {
		t.Errorf("%s: succeeds %t, on Open vSwitch %t:\n%s\n%s", name, gotOK, wantOK, got, want)
		return
	}
	if g, w := said(got), said(want); !slices.Equal(g, w) {
		t.Errorf("%s:\n%s", name, difference(g, w))
	}
}

// difference are the lines that only one side has.
func difference(got, want []string) string {
	var b strings.Builder
	for _, l := range got {
		if !slices.Contains(want, l) {
			fmt.Fprintf(&b, "got  %s\n", l)
		}
	}
	for _, l := range want {
		if !slices.Contains(got, l) {
			fmt.Fprintf(&b, "want %s\n", l)
		}
	}
	return b.String()
}
