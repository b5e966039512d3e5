package bridge

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
)

// wanted is the configuration of the rows.
type wanted struct {
	root     datum.ID // of the row of Open_vSwitch
	nextCfg  int64
	interval time.Duration // between two rounds without a change
	bridges  []*wantedBridge
}

// wantedBridge is a bridge with its row.
type wantedBridge struct {
	Bridge
	id    datum.ID
	ports []*wantedPort
	// unsupported names the columns whose configuration is not supported.
	unsupported []string
}

// wantedPort is a port with its row of Interface.
type wantedPort struct {
	Port
	id datum.ID
	// request is ofport_request, and last is ofport from before; 0 if the column is empty or not the
	// number of a port.
	request, last uint16
	// err is the reason why the port is refused; nil if it is not.
	err error
}

// shortestInterval is the least other_config:stats-update-interval, as in Open vSwitch.
const shortestInterval = 5 * time.Second

// readWanted reads the rows.
func readWanted(v store.View) *wanted {
	w := &wanted{interval: shortestInterval}
	for root := range v.Named("Open_vSwitch") {
		w.root = root.ID()
		w.nextCfg, _ = root.Number("next_cfg")
		config := root.Map("other_config")
		if ms, err := strconv.ParseInt(config["stats-update-interval"], 10, 32); err == nil {
			w.interval = max(shortestInterval, time.Duration(ms)*time.Millisecond)
		}
		for _, id := range root.Refs("bridges") {
			b := readBridge(v, v.Row("Bridge", id))
			b.FlowRestoreWait = config["flow-restore-wait"] == "true"
			w.bridges = append(w.bridges, b)
		}
	}
	slices.SortFunc(w.bridges, func(a, b *wantedBridge) int { return strings.Compare(a.Name, b.Name) })
	return w
}

func readBridge(v store.View, r *store.Row) *wantedBridge {
	b := &wantedBridge{id: r.ID(), Bridge: Bridge{
		Name: r.Text("name"), DatapathType: cmp.Or(r.Text("datapath_type"), "system"),
		FailMode: cmp.Or(r.Text("fail_mode"), "standalone"), Protocols: r.Texts("protocols"), OtherConfig: r.Map("other_config"),
	}}
	b.MAC = bridgeMAC(b.id, b.OtherConfig)
	b.DatapathID = datapathID(b.MAC, b.OtherConfig)
	b.unsupported = unsupportedColumns(v, r)
	for _, id := range r.Refs("controller") {
		b.Controllers = append(b.Controllers, readController(v.Row("Controller", id)))
	}
	slices.SortFunc(b.Controllers, func(a, b Controller) int { return strings.Compare(a.Target, b.Target) })
	for _, id := range r.Refs("ports") {
		b.ports = append(b.ports, readPort(v, b.Name, v.Row("Port", id))...)
	}
	slices.SortFunc(b.ports, func(a, c *wantedPort) int {
		return cmp.Or(ownPortFirst(b, a)-ownPortFirst(b, c), strings.Compare(a.Name, c.Name))
	})
	return b
}

// unsupportedColumns names the columns of a bridge, its ports and their interfaces that are not
// supported, but do not stop packets.
func unsupportedColumns(v store.View, bridge *store.Row) (all []string) {
	add := func(column string, set bool) {
		if set && !slices.Contains(all, column) {
			all = append(all, column)
		}
	}
	for _, column := range []string{"mirrors", "netflow", "sflow", "ipfix", "auto_attach", "flood_vlans", "flow_tables"} {
		add(column, len(bridge.Get(column).Keys) > 0)
	}
	for _, column := range []string{"stp_enable", "rstp_enable", "mcast_snooping_enable"} {
		add(column, numberOr(bridge, column, 0) != 0)
	}
	for _, id := range bridge.Refs("ports") {
		port := v.Row("Port", id)
		add("qos", len(port.Refs("qos")) > 0)
		for _, id := range port.Refs("interfaces") {
			r := v.Row("Interface", id)
			for _, column := range []string{"ingress_policing_rate", "ingress_policing_kpkts_rate", "cfm_mpid"} {
				add(column, numberOr(r, column, 0) != 0)
			}
			for _, column := range []string{"bfd", "lldp"} {
				add(column, r.Map(column)["enable"] == "true")
			}
		}
	}
	return all
}

// ownPortFirst puts the bridge's own port first.
func ownPortFirst(b *wantedBridge, p *wantedPort) int {
	if p.Name == b.Name {
		return 0
	}
	return 1
}

// bridgeMAC is other_config:hwaddr, or a locally administered address of the row's UUID, which stays
// the same over restarts.
func bridgeMAC(id datum.ID, config map[string]string) string {
	if mac, err := net.ParseMAC(config["hwaddr"]); err == nil && len(mac) == 6 && mac[0]&1 == 0 {
		return mac.String()
	}
	mac := net.HardwareAddr(slices.Clone(id[:6]))
	mac[0] = mac[0]&^1 | 2
	return mac.String()
}

// datapathID is other_config:datapath-id, sixteen hexadecimal digits, or the bridge's MAC
// address.
func datapathID(mac string, config map[string]string) uint64 {
	if n, err := strconv.ParseUint(config["datapath-id"], 16, 64); err == nil && len(config["datapath-id"]) == 16 && n != 0 {
		return n
	}
	var all [8]byte
	_, _ = hex.Decode(all[2:], []byte(strings.ReplaceAll(mac, ":", "")))
	n := uint64(0)
	for _, b := range all {
		n = n<<8 | uint64(b)
	}
	return n
}

func readController(r *store.Row) Controller {
	return Controller{
		Target: r.Text("target"), ConnectionMode: r.Text("connection_mode"), OtherConfig: r.Map("other_config"),
		InactivityProbe: numberOr(r, "inactivity_probe", -1), MaxBackoff: numberOr(r, "max_backoff", -1),
	}
}

func numberOr(r *store.Row, column string, otherwise int64) int64 {
	if n, ok := r.Number(column); ok {
		return n
	}
	return otherwise
}

// readPort reads the interfaces of a port. Those of a bond are refused.
func readPort(v store.View, bridge string, port *store.Row) (all []*wantedPort) {
	interfaces := port.Refs("interfaces")
	for _, id := range interfaces {
		p := readInterface(bridge, port, v.Row("Interface", id))
		if len(interfaces) > 1 {
			p.err = fmt.Errorf("port %s has %d interfaces: bonds are not supported", port.Text("name"), len(interfaces))
		}
		all = append(all, p)
	}
	return all
}

func readInterface(bridge string, port, r *store.Row) *wantedPort {
	p := &wantedPort{id: r.ID(), Port: Port{
		Name: r.Text("name"), Type: cmp.Or(r.Text("type"), "system"), MAC: r.Text("mac"), MTU: int(numberOr(r, "mtu_request", 0)),
		Options: r.Map("options"), Tag: int(numberOr(port, "tag", -1)), Trunks: port.Numbers("trunks"), VLANMode: port.Text("vlan_mode"),
		ExternalIDs: r.Map("external_ids"), OtherConfig: r.Map("other_config"),
	}, err: unsupportedPort(port)}
	p.request, p.last = portNumber(r, "ofport_request"), portNumber(r, "ofport")
	if p.Name == bridge {
		p.Type, p.Number = "internal", LocalPort
	}
	return p
}

// unsupportedPort returns an error for a port whose packets must not pass, because a column is not
// supported.
func unsupportedPort(port *store.Row) error {
	if protected, _ := port.Number("protected"); protected != 0 {
		return fmt.Errorf("port %s: protected is not supported: NORMAL would send its packets to other protected ports", port.Text("name"))
	}
	if port.Text("vlan_mode") == "dot1q-tunnel" || len(port.Numbers("cvlans")) > 0 {
		return fmt.Errorf("port %s: vlan_mode=dot1q-tunnel and cvlans are not supported, because frames have one tag at most", port.Text("name"))
	}
	switch tags := port.Map("other_config")["priority-tags"]; tags {
	case "", "no", "never", "false":
		return nil
	default:
		return fmt.Errorf("port %s: other_config:priority-tags=%s is not supported: a tag without VLAN and priority is not sent", port.Text("name"), tags)
	}
}

// portNumber is the value of a column with a port number; 0 if it is empty or not a valid one.
func portNumber(r *store.Row, column string) uint16 {
	if n, ok := r.Number(column); ok && n > 0 && n <= lastNumber {
		return uint16(n)
	}
	return 0
}
