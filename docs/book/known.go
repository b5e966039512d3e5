package main

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/tables"
)

// Addresses, MACs and zones that a reader of an entry would have to look up. The names come from
// the objects, and from package tables.

// known maps a text in an entry to what it stands for.
type known map[string]string

// newKnown reads the objects of the sample.
func newKnown(top string) (known, error) {
	cluster, _, err := store.LoadManifests(filepath.Join(top, objects))
	if err != nil {
		return nil, err
	}
	k := known{
		macText(tables.GlobalVirtualMAC):         "the Global Virtual MAC",
		tables.VirtualServiceIP.String():         "the virtual Service address",
		tables.VirtualServiceIPv6.String():       "the virtual Service address",
		tables.VirtualNodePortIP.String():        "the virtual NodePort address",
		tables.VirtualNodePortIPv6.String():      "the virtual NodePort address",
		fmt.Sprint("zone=", tables.CtZone):       "CtZone",
		fmt.Sprint("zone=", tables.CtZoneV6):     "IPv6's CtZone",
		fmt.Sprint("zone=", tables.SNATCtZone):   "SNATCtZone",
		fmt.Sprint("zone=", tables.SNATCtZoneV6): "IPv6's SNATCtZone",
		"ff00::/8":                               "multicast",
		"fe80::/10":                              "all link-local addresses",
	}
	for _, n := range cluster.NodeConfigs {
		k.addrs(n.Gateway.IPs, n.Key.Name+"'s gateway")
		k[macText(n.Gateway.MAC)] = n.Key.Name + "'s gateway"
		k.addrs(n.NodePortAddresses, n.Key.Name)
		k.addrs(n.TransportIPs, n.Key.Name)
		for _, p := range n.ServiceCIDRs {
			k[p.String()] = "the Services' addresses"
		}
		for _, p := range n.Ports {
			if p.Pod.Name != "" {
				k[macText(p.MAC)] = "Pod " + p.Pod.Name
			}
		}
	}
	for _, n := range cluster.Nodes {
		for _, p := range n.PodCIDRs {
			k[p.String()] = "the Pods of " + n.Key.Name
		}
	}
	for _, p := range cluster.Pods {
		k.addrs(p.IPs, "Pod "+p.Key.Name)
	}
	for _, s := range cluster.Services {
		k.addrs(s.ClusterIPs, "Service "+s.Key.Name)
		k.addrs(s.ExternalIPs, "Service "+s.Key.Name)
		k.addrs(s.LoadBalancerIPs, "Service "+s.Key.Name)
	}
	for _, e := range cluster.Egresses {
		k[e.Addr.String()] = "Egress " + e.Key.Name
	}
	return k, nil
}

func (k known) addrs(all []netip.Addr, what string) {
	for _, a := range all {
		if !a.IsLoopback() {
			k[a.String()] = what
		}
	}
}

func macText(m [6]byte) string { return net.HardwareAddr(m[:]).String() }

// number matches a text that may be known: a zone, an address, a prefix or a MAC.
var number = regexp.MustCompile(`zone=\d+|[0-9a-fA-F]*[.:][0-9a-fA-F.:]+(/\d+)?`)

// of returns the meaning of each known text in a line, once. It leaves out the objects that told
// names.
func (k known) of(line, told string) string {
	var all []string
	for _, text := range number.FindAllString(strings.ReplaceAll(line, "set_field:", ""), -1) {
		if strings.Contains(text, ".") {
			text, _, _ = strings.Cut(text, ":") // a port
		}
		what := k[text]
		if kind, name, is := strings.Cut(what, " "); what == "" || is && strings.Contains(told, kind+"/default/"+name) || is && strings.Contains(told, kind+"/"+name) {
			continue
		}
		all = added(all, strings.Replace(text, "=", " ", 1)+" is "+what)
	}
	return strings.Join(all, ", ")
}
