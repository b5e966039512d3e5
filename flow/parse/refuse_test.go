package parse_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/internal/ovstest"
	"github.com/antrail/antrail/internal/testsize"
)

// wrongLines are refused with an error that names the place. Open vSwitch refuses
// them too, except the lenient ones, of which it silently drops a part.
var wrongLines = []struct {
	line    string
	column  int
	message string
	lenient bool
}{
	{"ip", 3, "expected actions=", false},
	{"actions=bogus", 9, `unknown action "bogus"`, false},
	{"actions=outptu:3", 9, "did you mean output?", false},
	{"tcp,nw_srcc=1.2.3.4 actions=drop", 5, "did you mean nw_src?", false},
	{"reg16=5 actions=drop", 1, "unknown field", false},
	{"NXM_NX_REG0=5 actions=drop", 1, "unknown field", false},
	{"ip,nw_src actions=drop", 4, "needs a value", false},
	{"tcp=5 actions=drop", 5, "takes no value", true},
	{"reg0=0x100000000 actions=drop", 6, "too large for reg0, which has 32 bits", false},
	{"reg0=5/0x100000000 actions=drop", 8, "too large for reg0", false},
	{"reg0=5x actions=drop", 6, "expected a number", false},
	{"reg0= actions=drop", 6, "expected a number", true},
	{"udp,tp_dst= actions=drop", 12, "expected a number", true},
	{"reg0=0x actions=drop", 6, "expected a number", true},
	{"reg0=010 actions=drop", 6, "cannot begin with 0", true}, // octal there
	{"xxreg0=0x1ffffffffffffffffffffffffffffffff actions=drop", 8, "128 bits", false},
	{"tcp,tp_dst=65536 actions=drop", 12, "too large", false},
	{"ip,nw_proto=256 actions=drop", 13, "too large", false},
	{"ip,nw_ttl=4/2 actions=drop", 13, "takes no mask", false},
	{"in_port=2/1 actions=drop", 11, "takes no mask", false},
	{"in_port=nowhere actions=drop", 9, `unknown port "nowhere"`, false},
	{"in_port=70000 actions=drop", 9, "out of range", false},
	{"eth_type=5/3 actions=drop", 12, "takes no mask", false},
	{"dl_dst=00:11:22 actions=drop", 8, "expected a MAC address", false},
	{"ip,nw_src=1.2.3 actions=drop", 11, "expected an IPv4 address", false},
	{"ip,nw_src=1.2.3.4/33 actions=drop", 19, "the largest is 32", false},
	{"ipv6,ipv6_src=fe80::1/129 actions=drop", 23, "the largest is 128", false},
	{"ip,nw_src=fe80::1 actions=drop", 11, "expected an IPv4 address", false},
	{"ct_state=+bogus actions=drop", 11, `"bogus" is no ct_state flag`, false},
	{"ct_state=+new-new actions=drop", 15, "given twice", false},
	{"ct_state=0x200 actions=drop", 10, "bits that no ct_state flag has", false},
	{"ct_state=+inv+trk,ip,ct_nw_src=1.2.3.4 actions=drop", 22, "valid ct_state", false},
	{"ip,nw_frag=maybe actions=drop", 12, "no fragment type", false},
	{"tcp,tcp_flags=+xyz actions=drop", 16, "no tcp_flags flag", false},
	{"tun_ttl=5 actions=drop", 1, "cannot be matched on", false},
	{"tun_metadata8=5 actions=drop", 1, `unknown field "tun_metadata8"`, false},
	{"tun_metadata_present=1 actions=drop", 1, "cannot be matched on", false},
	{"tun_metadata0=0x10000000000000000 actions=drop", 15, "64 bits", true},
	{"tun_metadata0,tun_metadata0=5 actions=drop", 15, "contradicts", false},
	{"priority=65536 actions=drop", 10, "largest is 65535", false},
	{"priority=-1 actions=drop", 10, "expected a number", false},
	{"table=255 actions=drop", 7, "tables are 0 to 254", true}, // "any table" there
	{"table=nowhere actions=drop", 7, `unknown table "nowhere"`, false},
	{"idle_timeout=65536 actions=drop", 14, "largest is 65535", false},
	{"cookie=5/5 actions=drop", 8, "expected a number", false},
	{"tp_dst=5 actions=drop", 1, "needs tcp", true},
	{"ip,tp_dst=5 actions=drop", 4, "needs tcp", true},
	{"nw_src=1.2.3.4 actions=drop", 1, "needs ip", true},
	{"arp_op=1 actions=drop", 1, "needs arp", true},
	{"udp,tcp_dst=4 actions=drop", 5, "needs tcp", true},
	{"icmp6,nd_target=::1 actions=drop", 7, "icmp_type=135", true},
	{"tcp,nw_frag=later,tp_src=5 actions=drop", 19, "needs tcp", false},
	{"reg0=5,reg0=6 actions=drop", 8, "contradicts", true},
	{"tcp,udp actions=drop", 5, "contradicts", true},
	{"dl_vlan=5,dl_vlan=6 actions=drop", 11, "contradicts", true},
	{"dl_vlan=4096 actions=drop", 9, "VLANs are 0 to 4095", true},
	{"actions=drop,output:1", 14, "drop stands alone", false},
	{"actions=output:1,drop", 18, "drop stands alone", false},
	{"actions=output:99999", 16, "out of range", false},
	{"actions=set_field:5->nw_proto", 22, "read-only", false},
	{"actions=set_field:5->conj_id", 22, "read-only", false},
	{"actions=set_field:5->tun_ttl", 22, "unknown field", false},
	{"actions=set_field:1.2.3.4->ip_src", 9, "ip_src needs ip", false},
	{"udp actions=set_field:80->tcp_dst", 13, "tcp_dst needs tcp", false},
	{"actions=set_field:5->reg0x", 22, "did you mean reg0?", false},
	{"actions=set_field:reg0", 9, "expected set_field:VALUE->FIELD", false},
	{"actions=set_field:0x10/0xf->reg0", 19, "bits outside its mask", false},
	{"arp actions=set_field:3/1->arp_op", 25, "takes no mask", false},
	{"ip actions=set_field:5->nw_tos", 22, "lower 2 must be 0", false},
	{"arp actions=set_field:256->arp_op", 23, "largest is 255", false},
	{"dl_vlan=4 actions=set_field:5->vlan_vid", 29, "lacks it", false},
	{"dl_vlan=4 actions=set_field:0x87bb->vlan_tci,set_field:4101->vlan_vid", 46, "needs a VLAN tag", false},
	{"actions=set_field:4101->vlan_vid", 9, "needs a VLAN tag", false},
	{"actions=move:NXM_NX_REG0[0..2]->OXM_OF_VLAN_PCP[]", 9, "needs a VLAN tag", false},
	{"actions=move:OXM_OF_VLAN_PCP[]->NXM_NX_REG0[0..2]", 9, "needs a VLAN tag", false},
	{"actions=pop_vlan", 9, "needs a VLAN tag", false},
	{"actions=push_vlan:0x1234", 19, "needs 0x8100 or 0x88a8", false},
	{"actions=set_field:1->ct_mark", 9, "only be set inside ct", false},
	{"actions=load:8->NXM_NX_REG4[16..18]", 14, "does not fit into 3 bits", false},
	{"actions=load:1->NXM_NX_REG4[18..16]", 33, "comes before", false},
	{"actions=load:1->NXM_NX_REG4[32]", 29, "largest is 31", false},
	{"actions=move:NXM_NX_REG0[]->NXM_OF_IN_PORT[]", 14, "32 bits, the destination 16", false},
	{"actions=move:NXM_NX_REG0[0..7]->NXM_NX_IP_TTL[]", 9, "nw_ttl needs ip", false},
	{"actions=dec_ttl", 9, "dec_ttl needs ip", false},
	{"actions=resubmit()", 9, "needs a port or a table", false},
	{"actions=resubmit(,2,xx)", 21, "expected ct", false},
	{"ip actions=resubmit(,2,ct)", 12, "valid ct_state", false},
	{"table=3 actions=goto_table:3", 17, "must go forward", false},
	{"table=1 actions=goto_table:2,output:1", 17, "must be the last", false},
	{"actions=clone(goto_table:2)", 9, "not allowed here", false},
	{"actions=conjunction(1,1/2),output:1", 28, "beside note only", false},
	{"actions=conjunction(1,3/2)", 23, "not one of 1 to 2", false},
	{"actions=conjunction(1,1/1)", 25, "2 to 64 clauses", false},
	{"actions=conjunction(1,1/65)", 25, "largest is 64", false},
	{"actions=ct(table=2)", 9, "ct needs ip", false},
	{"ip actions=ct(force)", 12, "needs commit", false},
	{"ip actions=ct(exec(set_field:1->ct_mark))", 12, "needs commit", false},
	{"ip actions=ct(nat(src=1.2.3.4))", 12, "needs commit", false},
	{"ip actions=ct(commit,exec(set_field:1->reg1))", 27, "only set ct_mark and ct_label", false},
	{"ip actions=ct(commit,exec(output:1))", 27, "only set ct_mark and ct_label", false},
	{"ip actions=ct(zone=70000)", 20, "largest is 65535", false},
	{"ip actions=ct(zone=NXM_NX_REG8[])", 20, "a zone has 16 bits", false},
	{"ip actions=ct(bogus)", 15, "unknown ct option", false},
	{"ip actions=ct(commit,alg=ftp)", 12, "alg=ftp needs tcp", false},
	{"ip actions=ct(commit,nat(src=1.2.3.4:9-8))", 38, "lower one first", false},
	{"ip actions=ct(commit,nat(src=1.2.3.4-1.2.3.3))", 38, "not an address after", false},
	{"ip actions=ct(commit,nat(src=1.2.3.4,dst=1.2.3.4))", 38, "one of src and dst", false},
	{"ip actions=ct(commit,nat(src=[fd00::1]:80))", 12, "needs ipv6", false},
	{"ip actions=ct(commit,nat(src=1.2.3.4,hash,random))", 22, "hash or random", false},
	{"ip actions=ct(commit,nat(persistent))", 22, "needs src or dst", false},
	{"actions=nat", 9, "inside ct", false},
	{"actions=learn(table=255)", 21, "tables are 0 to 254", false},
	{"actions=learn(table=2,reg0=5/3)", 28, "mask is not possible", false},
	{"tcp actions=learn(table=1,NXM_OF_TCP_DST[])", 13, "in the learned entry, tcp_dst needs tcp", false},
	{"actions=learn(table=1,eth_type=0x800,nw_proto=6,NXM_OF_TCP_DST[])", 9, "learn: tcp_dst needs tcp", false},
	{"actions=learn(table=2,load:0x55->NXM_NX_REG0[0..3])", 28, "does not fit into 4 bits", false},
	{"actions=learn(table=2,load:NXM_NX_REG0[]->NXM_NX_REG0[0..3])", 28, "32 bits, the destination 4", false},
	{"actions=learn(table=2,what=5)", 23, "unknown field", false},
	{"actions=controller(reason=bored)", 27, "expected no_match", false},
	{"actions=controller(userdata=0g)", 29, "expected bytes", false},
	{"actions=group:4294967295", 15, "the largest is", false},
	{"actions=ct(commit", 11, "expected )", false},
	{"ip actions=drop)", 16, `')' without`, false},
	{`in_port="p1 actions=drop`, 9, "a quote that is not closed", false},
	{"importance=3 actions=drop", 1, "not supported", true},
	{"actions=set_queue:4", 9, "not supported", true},
	{"actions=output(port=1,max_len=100)", 16, "not supported", true},
	{"actions=meter:0", 15, "begin with 1", false},
	{"actions=output:", 16, "expected a port", false},
	{"actions=resubmit:in_port", 18, "never end", false},
	{"actions=learn(table=2)x", 23, "expected , or the end", false},
	{"actions=note:0g", 14, "expected bytes", false},
}

func TestRefuses(t *testing.T) {
	for _, w := range wrongLines {
		e, err := parse.Entry(w.line, ovsNames())
		var at *flow.Error
		switch {
		case !errors.As(err, &at):
			t.Errorf("%s: taken, as %v", w.line, e)
		case e != nil:
			t.Errorf("%s: refused, but an entry is returned", w.line)
		case at.Column != w.column || !strings.Contains(at.Msg, w.message):
			t.Errorf("%s: refused with %q, want column %d and %q", w.line, err, w.column, w.message)
		}
	}
}

// Open vSwitch refuses the same lines.
func TestOVSRefusesToo(t *testing.T) {
	s := startOVS(t)
	for _, w := range testsize.Some(wrongLines) {
		if _, err := s.Ofctl("add-flow", w.line); (err == nil) != w.lenient {
			t.Errorf("%s: Open vSwitch says %v", w.line, err)
		}
	}
}

// Groups and meters that both refuse.
func TestRefusesGroupsAndMeters(t *testing.T) {
	groups := []string{
		"group_id=16,type=all,bucket=weight:4,output:1",
		"group_id=17,type=all,bucket=",
		"group_id=18,type=select,bucket=bucket_id:1,actions=output:1,bucket=bucket_id:1,output:3",
		"group_id=19,type=indirect,bucket=output:1,bucket=output:2",
		"group_id=20,type=select,bucket=goto_table:4",
		"group_id=21,type=bogus",
		"group_id=22",
		"type=all",
		"group_id=23,type=ff,bucket=output:1",
		"group_id=24,type=all,bucket=bogus",
		"group_id=25,type=all,colour=red",
	}
	meters := []string{
		"meter=7 burst kbps bands= type=drop rate=100",
		"meter=8 bands=type=drop,rate=100",
		"meter=9 kbps",
		"meter=0 kbps band=type=drop rate=5",
		"meter=1 kbps band=type=bogus rate=5",
		"meter=2 kbps band=type=drop",
		"meter=3 kbps band=type=drop rate=x",
		"meter=4 kbps band=type=drop rate=0",
		"meter=5 kbps burst band=type=drop rate=5 burst_size=0",
	}
	for _, g := range groups {
		if _, err := parse.Group(g, portNames()); err == nil {
			t.Errorf("%s: taken", g)
		}
	}
	for _, m := range meters {
		if _, err := parse.Meter(m); err == nil {
			t.Errorf("%s: taken", m)
		}
	}
	s := ovstest.Start(t, ovstest.Port{Name: "p1", Number: 1})
	for _, g := range groups {
		if _, err := s.Ofctl("add-group", g); err == nil {
			t.Errorf("%s: Open vSwitch takes it", g)
		}
	}
	for _, m := range meters {
		if _, err := s.Ofctl("add-meter", m); err == nil {
			t.Errorf("%s: Open vSwitch takes it", m)
		}
	}
}
