package daemon

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/ovstest"
)

// vsctl are commands of ovs-vsctl in an order in which each builds on those before. Both
// databases have the bridge br0 then.
var vsctl = []string{
	"show",
	"list-br",
	"add-br br1 -- set bridge br1 datapath_type=dummy",
	"add-br br1",
	"--may-exist add-br br1",
	"br-exists br1",
	"br-exists nobridge",
	"add-port br1 p1 -- set Interface p1 type=dummy ofport_request=7",
	"get Interface p1 ofport error link_state admin_state mtu type link_resets",
	"add-port br1 p2 -- set Interface p2 type=dummy",
	"get Interface p2 ofport",
	"add-port br1 p1",
	"list-ports br1",
	"list-ifaces br1",
	"port-to-br p1",
	"iface-to-br p1",
	"iface-to-br nothing",
	"wait-until Interface p1 ofport=7",
	"set Interface p1 external_ids:iface-id=lsp1 external_ids:a=b",
	"--columns=name,ofport,external_ids,ofport_request list Interface p1",
	"--columns=name,type find Interface external_ids:iface-id=lsp1",
	"--format=json --columns=name,tag,trunks,vlan_mode,fake_bridge list Port p1",
	"--format=csv --columns=name,interfaces,qos list Port p2",
	"remove Interface p1 external_ids iface-id",
	"get Interface p1 external_ids",
	"get Interface p1 external_ids:nokey",
	"set Port p1 tag=5 trunks=1,2,3",
	"get Port p1 tag trunks",
	"add Port p1 trunks 4 5",
	"remove Port p1 trunks 1",
	"get Port p1 trunks",
	"clear Port p1 tag trunks",
	"set Port p1 tag=5000",
	"set Interface p1 ofport_request=0",
	"set Interface p1 ofport_request=12",
	"get Interface p1 ofport",
	"set Bridge br1 nocolumn=1",
	"set Bridge br1 name=other",
	"set Bridge br1 protocols=OpenFlow13,OpenFlow15",
	"set Bridge br1 protocols=OpenFlow99",
	"get Bridge br1 protocols",
	"get-fail-mode br1",
	"set-fail-mode br1 secure",
	"get-fail-mode br1",
	"del-fail-mode br1",
	"br-set-external-id br1 k v",
	"br-get-external-id br1",
	"br-get-external-id br1 k",
	"set-controller br1 ptcp:0:127.0.0.1",
	"get-controller br1",
	"--columns=target,max_backoff,connection_mode,external_ids list Controller",
	"del-controller br1",
	"--columns=target list Controller",
	"set-manager ptcp:6640:127.0.0.1 unix:/none",
	"get-manager",
	"del-manager",
	"--id=@m create Mirror name=m0 select_all=true -- set Bridge br1 mirrors=@m",
	"--columns=name,select_all,output_port,statistics list Mirror",
	"--id=@p get Port p2 -- set Mirror m0 output-port=@p",
	"--columns=name,output_port list Mirror",
	"del-port p2",
	"--columns=name,output_port list Mirror",
	"clear Bridge br1 mirrors",
	"list Mirror",
	"set Port p1 qos=@q -- --id=@q create QoS type=linux-noop queues=0=@z -- --id=@z create Queue other-config:min-rate=1",
	"--columns=type,queues,other_config list QoS",
	"-- clear Port p1 qos -- --all destroy QoS -- --all destroy Queue",
	"list Queue",
	"create Port name=lost",
	"--columns=name list Port",
	"destroy Port nothing",
	"--if-exists del-port br1 p9",
	"del-port br1 p9",
	"set Open_vSwitch . external_ids:system-id=node other_config:a=b",
	"get Open_vSwitch . external_ids other_config cur_cfg next_cfg dpdk_initialized",
	"--no-wait set Open_vSwitch . external_ids:x=y -- get Open_vSwitch . external_ids",
	"add-br br2 -- set bridge br2 datapath_type=dummy -- add-port br2 q1 -- set Interface q1 type=dummy -- add-port br2 q2 -- set Interface q2 type=dummy",
	"add-br fake br2 9",
	"list-br",
	"br-to-vlan fake",
	"br-to-parent fake",
	"del-br fake",
	"add-port br2 nodev",
	"get Interface nodev ofport error",
	"show",
	"del-br br2",
	"del-port p1",
	"del-br br1",
	"emer-reset",
	"show",
}

// volatile are texts that differ from run to run.
var volatile = []struct {
	is *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b`), "MAC"},
	{regexp.MustCompile(`/tmp/ovs\d+`), "RUNDIR"},
	{regexp.MustCompile(`(?m)^.*\|WARN\|.*\n`), ""},
	{regexp.MustCompile(`transaction error: .*"error":("[^"]*").*`), "transaction error: $1"},
}

func stable(text string) string {
	for _, v := range volatile {
		text = v.is.ReplaceAllString(text, v.by)
	}
	return text
}

// sorted puts the lines of a text in order: rows come in any.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestVsctl gives the same commands to ovs-vsctl over antrail's database and over that of Open
// vSwitch with its dummy datapath. Both print the same and exit with the same code.
func TestVsctl(t *testing.T) {
	ovs := ovstest.Start(t)
	f := startFront(t)
	tool(t, ovs.Dir, "ovs-vsctl", "--no-wait", "set", "Open_vSwitch", ".", "ovs-version=3.1.0") // ovs-ctl does this
	tool(t, f.dir, "ovs-vsctl", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", "fail-mode=secure",
		"protocols=OpenFlow10,OpenFlow13,OpenFlow15")
	for _, words := range vsctl {
		args := strings.Fields("--timeout=20 " + words)
		want, wantCode := tool(t, ovs.Dir, "ovs-vsctl", args...)
		got, code := tool(t, f.dir, "ovs-vsctl", args...)
		if got, want := sorted(stable(got)), sorted(stable(want)); got != want || code != wantCode {
			t.Errorf("ovs-vsctl %s: antrail, code %d:\n%s\nOpen vSwitch, code %d:\n%s", words, code, got, wantCode, want)
		}
	}
	if n := len(vsctl); n < 80 {
		t.Errorf("only %d commands were compared", n)
	}
	if got := fmt.Sprint(f.sw.Names()); got != "[br0/br0]" {
		t.Errorf("the switch is left with the ports %s", got)
	}
}

// client are commands of ovsdb-client; SOCKET is the database's.
var client = []string{
	"list-dbs SOCKET",
	"get-schema SOCKET _Server",
	"list-tables SOCKET",
	"list-columns SOCKET Open_vSwitch Port",
	"list-columns SOCKET Open_vSwitch Interface",
	"list-columns SOCKET _Server",
	"get-schema SOCKET nothing",
	"dump SOCKET Open_vSwitch Bridge name fail_mode protocols datapath_type ports other_config",
	"dump SOCKET _Server Database name model connected leader cid sid index",
	"--format=json dump SOCKET Open_vSwitch Port name tag trunks interfaces external_ids",
	"dump SOCKET Open_vSwitch NoTable",
	`transact SOCKET ["Open_vSwitch",{"op":"select","table":"Bridge","where":[["name","==","br0"]],"columns":["name","fail_mode","protocols"]}]`,
	`transact SOCKET ["Open_vSwitch",{"op":"insert","table":"QoS","row":{"type":"a","other_config":["map",[["k","v"]]]},"uuid-name":"q"},{"op":"mutate","table":"QoS","where":[["_uuid","==",["named-uuid","q"]]],"mutations":[["other_config","insert",["map",[["k","w"],["l","x"]]]]]},{"op":"select","table":"QoS","where":[],"columns":["type","other_config"]}]`,
	`transact SOCKET ["Open_vSwitch",{"op":"update","table":"QoS","where":[],"row":{"type":"b"}},{"op":"abort"},{"op":"comment","comment":"never"}]`,
	`transact SOCKET ["Open_vSwitch",{"op":"mutate","table":"QoS","where":[["type","==","a"]],"mutations":[["other_config","delete",["set",["k"]]]]},{"op":"select","table":"QoS","where":[],"columns":["type","other_config"]}]`,
	`transact SOCKET ["Open_vSwitch",{"op":"delete","table":"QoS","where":[["type","!=","b"]]},{"op":"select","table":"QoS","where":[]}]`,
	`transact SOCKET ["Open_vSwitch",{"op":"wait","table":"Bridge","where":[["name","==","br0"]],"columns":["fail_mode"],"until":"==","rows":[{"fail_mode":"secure"}],"timeout":0},{"op":"assert","lock":"l"}]`,
	`transact SOCKET ["_Server",{"op":"select","table":"Database","where":[["name","==","_Server"]],"columns":["name","model"]}]`,
}

// TestClient does the same with ovsdb-client.
func TestClient(t *testing.T) {
	ovs := ovstest.Start(t)
	f := startFront(t)
	for _, dir := range []string{ovs.Dir, f.dir} {
		tool(t, dir, "ovs-vsctl", "--may-exist", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", "fail-mode=secure",
			"protocols=OpenFlow10,OpenFlow13,OpenFlow15")
	}
	for _, words := range client {
		run := func(dir string) (string, int) {
			return tool(t, dir, "ovsdb-client", strings.Fields(strings.ReplaceAll(words, "SOCKET", "unix:"+dir+"/db.sock"))...)
		}
		want, wantCode := run(ovs.Dir)
		got, code := run(f.dir)
		if got, want := comparable(got), comparable(want); got != want || code != wantCode {
			t.Errorf("ovsdb-client %s: antrail, code %d:\n%s\nOpen vSwitch, code %d:\n%s", words, code, got, wantCode, want)
		}
	}
}

// detail is what differs in errors, which each server words by itself, and in schemas.
var detail = regexp.MustCompile(`"(details|syntax|cksum)":"([^"\\]|\\.)*",?`)

// comparable is the lines of a text in order, without what differs.
func comparable(text string) string {
	return sorted(detail.ReplaceAllString(stable(text), ""))
}

// appctl are commands of ovs-appctl to a daemon.
var appctl = []string{
	"nocommand",
	"version 1",
	"coverage/read-counter",
	"coverage/read-counter nocounter",
	"vlog/set nomodule:dbg",
	"vlog/set jsonrpc:file:dbg",
	"vlog/set file:any:warn",
	"vlog/set file:console",
	"vlog/set warn:dbg",
	"vlog/set",
}

// TestAppctl compares the answers that both daemons of Open vSwitch and of antrail give to
// ovs-appctl, and that ovs-appctl finds the sockets by the pid files.
func TestAppctl(t *testing.T) {
	ovs := ovstest.Start(t)
	f := startFront(t)
	for daemon, socket := range map[string]string{"ovsdb-server": "/db.ctl", "ovs-vswitchd": "/vs.ctl"} {
		for _, words := range appctl {
			want, wantCode := tool(t, ovs.Dir, "ovs-appctl", append([]string{"-t", ovs.Dir + socket}, strings.Fields(words)...)...)
			got, code := tool(t, f.dir, "ovs-appctl", append([]string{"-t", daemon}, strings.Fields(words)...)...)
			want = strings.ReplaceAll(want, "RUNDIR"+socket, daemon)
			if got != want || code != wantCode {
				t.Errorf("ovs-appctl -t %s %s: antrail, code %d:\n%s\nOpen vSwitch, code %d:\n%s", daemon, words, code, got, wantCode, want)
			}
		}
		for words, want := range map[string]string{
			"version": daemon + " (antrail) 1.2.3\n",

			"vlog/reopen":       "Logging to file not configured\novs-appctl: " + daemon + ": server returned an error\n",
			"vlog/list-pattern": "patterns are not supported: all records have one form\novs-appctl: " + daemon + ": server returned an error\n",
			"vlog/list": "                 console    syslog    file\n                 -------    ------    ------\n" +
				"bridge             DBG        DBG        DBG\ndaemon             DBG        DBG        DBG\njsonrpc            DBG        DBG        DBG\n" +
				"storage            DBG        DBG        DBG\nunixctl            DBG        DBG        DBG\n",
		} {
			if got, _ := tool(t, f.dir, "ovs-appctl", append([]string{"-t", daemon}, strings.Fields(words)...)...); got != want {
				t.Errorf("ovs-appctl -t %s %s:\n%s\nwant:\n%s", daemon, words, got, want)
			}
		}
	}
	for words, want := range map[string]string{"ovsdb-server/list-dbs": "Open_vSwitch\n_Server\n", "ovsdb-server/compact": ""} {
		if got, code := tool(t, f.dir, "ovs-appctl", "-t", "ovsdb-server", words); got != want || code != 0 {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
	if got, _ := tool(t, f.dir, "ovs-appctl", "list-commands"); !strings.Contains(got, "\n  coverage/read-counter   COUNTER\n") {
		t.Errorf("list-commands: %s", got)
	}
	if got, _ := tool(t, f.dir, "ovs-appctl", "-t", "ovsdb-server", "memory/show"); got != "cells:39 monitors:0 rows:3 sessions:0\n" {
		t.Errorf("memory/show: %s", got)
	}
}
