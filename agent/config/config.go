package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/switchd/local"
	"github.com/antrail/antrail/tables"
	"sigs.k8s.io/yaml"
)

// Default names and numbers: those of an Antrea Node.
const (
	DefaultSocket  = "/run/antrail/agent.sock"
	DefaultSwitch  = "/run/antrail/switch.sock" // of antrail switch
	DefaultGateway = "antrea-gw0"
	DefaultTunnel  = "antrea-tun0"

	minMTU  = 576
	minMTU6 = 1280 // RFC 8200, section 5
	maxMTU  = 9000 // the largest that every driver takes (ports/afxdp)
)

// Config is the agent's configuration file (YAML). A key that is not listed here is an error
// that names it. Paths of files are relative to the configuration file. Package docs/reference
// makes docs/configuration.md of these comments and of the tags unit, default and since.
type Config struct {
	// NodeName is the Node's name.
	NodeName string `json:"nodeName" default:"$NODE_NAME with kubernetes"`
	// NodeType is k8sNode, or externalNode for a machine without pods, as of Antrea. An external
	// Node has manifests, and neither gateway, tunnel, podCIDRs nor peers.
	NodeType string `json:"nodeType,omitempty"`
	// Socket is the unix socket of the API. Its mode is 0600.
	Socket string `json:"socket,omitempty"`
	// Gateway is the port to the Node itself: a tap that is the pods' router.
	Gateway Gateway `json:"gateway"`
	// Tunnel is the port to the other Nodes. With noEncap, only localAddress has a meaning.
	Tunnel Tunnel `json:"tunnel"`
	// TrafficEncapMode is one of encap, noEncap, hybrid and networkPolicyOnly, as of Antrea. It must be equal on
	// all Nodes.
	TrafficEncapMode string `json:"trafficEncapMode,omitempty"`
	// TransportCIDRs are the ranges of Nodes that hybrid reaches without a tunnel.
	TransportCIDRs []netip.Prefix `json:"transportCIDRs,omitempty"`
	// PodCIDRs are this Node's pod ranges, one in each address family that its pods have.
	PodCIDRs []netip.Prefix `json:"podCIDRs" default:"from the API with kubernetes"`
	// Peers are the other Nodes. The tunnel takes packets from no others. Not with kubernetes,
	// which knows them.
	Peers []Peer `json:"peers,omitempty"`
	// Flows is a file of flow entries, in the text of ovs-ofctl.
	Flows string `json:"flows,omitempty"`
	// Groups is a file of groups, beside flows.
	Groups string `json:"groups,omitempty"`
	// Meters is a file of meters, beside flows.
	Meters string `json:"meters,omitempty"`
	// Program is the name of a program, in place of flows. It uses gateway, tunnel, podCIDRs,
	// peers and ports. Not with kubernetes or manifests.
	Program string `json:"program,omitempty"`
	// Services are addresses that the program translates. Only with program.
	Services []ProgramService `json:"services,omitempty"`
	// Policies are what single pods may send and receive. Only with programs uplink and vppl3.
	Policies []ProgramPolicy `json:"policies,omitempty"`
	// Uplink says how program uplink uses the Node's card. Only with that program, which needs it.
	Uplink *Uplink `json:"uplink,omitempty"`
	// Manifests is a file or directory of Kubernetes and Antrea objects, in place of flows. The
	// agent watches it.
	Manifests string `json:"manifests,omitempty"`
	// Kubernetes is the API server with the objects, in place of flows and manifests. The Node
	// object gives podCIDRs, gateway and tunnel if they are not set.
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`
	// Switch is the unix socket of a running switch (antrail switch). If it is not set, the
	// agent launches one.
	Switch string `json:"switch,omitempty"`
	// Ports are the pods' links. With manifests, the NodeConfig numbers the ports, and a port
	// that is not listed has the link of its name. With kubernetes, they are ports that the CNI
	// plugin does not make.
	Ports []Port `json:"ports,omitempty"`
	// PodDriver is the driver of pods' ports without one, also of those of the CNI plugin:
	// auto, afxdp or afpacket.
	PodDriver string `json:"podDriver,omitempty"`
	// PodVLANTags lets pods send frames with one VLAN tag.
	PodVLANTags bool `json:"podVLANTags,omitempty"`
	// AFXDP says how ports on AF_XDP drive cards.
	AFXDP AFXDP `json:"afxdp,omitzero"`
	// Workers is how many threads move packets at most, 1 to 64. All but the first sleep
	// until it falls behind.
	Workers int `json:"workers,omitempty" unit:"threads" default:"2, or 1 on a single processor"`
	// Conntrack has limits and timeouts of connections.
	Conntrack Conntrack `json:"conntrack,omitzero"`
	// ConnectionCache lets workers keep an exact-match cache and megaflows. Without them,
	// every packet walks the tables.
	ConnectionCache *bool `json:"connectionCache,omitempty"`
	// Offload is one of auto and off. With auto the kernel forwards established connections
	// where it can.
	Offload string `json:"offload,omitempty"`
	// KeepAwake is one of on, off and auto. With on, idle processors stay awake while pods talk
	// through the switch, and during garbage collection. auto is on for up to four processors.
	KeepAwake string `json:"keepAwake,omitempty"`
	// CNI says where the container runtime has the plugin's files.
	CNI CNIFiles `json:"cni,omitzero"`
	// Metrics says how metrics and probes are served.
	Metrics Metrics `json:"metrics,omitzero"`
	// Page says where the page is served.
	Page Page `json:"page,omitzero"`
	// Log is the format and level of the agent's log.
	Log Logging `json:"log,omitzero"`
	// AuditLog says where the audit log of policies goes.
	AuditLog AuditLog `json:"auditLog,omitzero"`
	// Drops bounds how many dropped packets the agent keeps, and turns their log lines on or off.
	Drops Drops `json:"drops,omitzero"`
	// Masquerade gives pod traffic that leaves the cluster the Node's address.
	Masquerade *bool `json:"masquerade,omitempty"`

	// Release is the version of the program. The agent replaces a switch of another version.
	Release string `json:"-"`
	// NewSwitch replaces a running switch in any case.
	NewSwitch bool `json:"-"`
	// Await is the unix socket of a process that waits to become the switch (antrail switch
	// --await). The process is of the same pod. "": the switch is a child process.
	Await string `json:"-"`
	// ownSwitchKeys are the given keys that are settings of a switch.
	ownSwitchKeys []string
	// learned is set when the API's facts are filled in.
	learned bool
}

// Gateway is the port to the Node itself: a tap that is the pods' router. It has
// an address in each address family of the pods.
type Gateway struct {
	// Name is the name of the link.
	Name string `json:"name,omitempty"`
	// OFPort is the number of the port in the pipeline, 1 to 65279.
	OFPort uint32 `json:"ofPort,omitempty" unit:"port number"`
	// MAC is the address of the link.
	MAC MAC `json:"mac" default:"made of the Node's name with kubernetes"`
	// Addresses are the pods' next hops, one in each address family, with their ranges.
	Addresses []netip.Prefix `json:"addresses" default:"the first of each of podCIDRs with kubernetes"`
	// MTU is the MTU of gateway and pods, 9000 at most.
	MTU int `json:"mtu,omitempty" unit:"bytes" default:"what the tunnel leaves of the underlay's, or of 1500 if that is less"`
}

// Peer is another Node. Its gateways are the next hops to its pods, one for each pod CIDR in
// the same order.
type Peer struct {
	// Name is the Node's name.
	Name string `json:"name"`
	// Address is the Node's address on the underlay, of the family of tunnel.localAddress.
	Address netip.Addr `json:"address"`
	// PodCIDRs are the Node's pod ranges, one in each address family.
	PodCIDRs []netip.Prefix `json:"podCIDRs"`
	// Gateways are the next hops to the Node's pods, one for each of its podCIDRs.
	Gateways []netip.Addr `json:"gateways"`
	// NodeIPs are the Node's addresses, at most one in each family, by which its pods of that
	// family are reached without a tunnel.
	NodeIPs []netip.Addr `json:"nodeIPs,omitempty" default:"address"`
}

// Port is a pod's port: its name and number in the pipeline, and its link on the Node. If the
// link is absent, the port opens when it comes.
type Port struct {
	// Name is the port's name in the pipeline.
	Name string `json:"name"`
	// OFPort is the number of the port in the pipeline, 1 to 65279. With manifests, the
	// NodeConfig has it, unless the port names a program.
	OFPort uint32 `json:"ofPort,omitempty" unit:"port number"`
	// Link is the link on the Node. If it is absent, the port opens when it comes.
	Link string `json:"link,omitempty" default:"name"`
	// Driver is one of auto, afxdp, afpacket and tap.
	Driver string `json:"driver,omitempty" default:"podDriver"`
	// Pod is the Pod of the port, as namespace/name. Only with kubernetes.
	Pod string `json:"pod,omitempty"`
	// MAC is the Pod's address, or the uplink's. Only with pod or program.
	MAC MAC `json:"mac,omitzero"` // zero on a port without a Pod (podports/portsecurity.go)

	// Address is the Pod's IP address. Only with a program.
	Address netip.Addr `json:"address,omitzero"`
	// Role is the port's role in a program: pod, uplink or bridge. Only with program.
	Role string `json:"role,omitempty" default:"pod"`
	// Program is the program of the port, if it is not the switch's. Beside objects, only vppl3
	// is possible.
	Program string `json:"program,omitempty"`
	// NoReturn is set if nothing comes back from a tap.
	NoReturn bool `json:"-"`
	// VLAN is the underlay's VLAN of the port's Pod; 0: none.
	VLAN uint16 `json:"-"`
}

// MAC is an Ethernet address in its text form aa:bb:cc:dd:ee:ff.
type MAC = packet.MAC

// Load reads and checks a configuration file. Errors name the file and the key.
func Load(path string) (*Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	paths := []*string{&c.Flows, &c.Groups, &c.Meters, &c.Manifests, &c.AuditLog.Path, &c.Page.Plots}
	if c.Kubernetes != nil {
		paths = append(paths, c.Kubernetes.files()...)
	}
	for _, f := range paths {
		if *f != "" && !filepath.IsAbs(*f) {
			*f = filepath.Join(filepath.Dir(path), *f)
		}
	}
	return c, nil
}

// Parse reads a configuration, fills in defaults and checks it. The error has all faults.
func Parse(text []byte) (*Config, error) {
	c := &Config{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, misread(text, err)
	}
	own := c.switchKeys()
	c.setDefaults()
	if err := c.check(); err != nil {
		return c, err
	}
	c.ownSwitchKeys = own
	return c, c.CheckSwitch()
}

// switchKeys are the given keys that are settings of the switch.
func (c *Config) switchKeys() (keys []string) {
	for key, given := range map[string]bool{
		"workers": c.Workers != 0, "conntrack": !reflect.ValueOf(c.Conntrack).IsZero(), "connectionCache": c.ConnectionCache != nil,
		"offload": c.Offload != "", "keepAwake": c.KeepAwake != "", "afxdp": c.AFXDP != AFXDP{},
	} {
		if given {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// CheckSwitch returns an error if Switch is set together with settings of a switch, or while
// the agent owns a card.
func (c *Config) CheckSwitch() error {
	if c.Switch == "" || len(c.ownSwitchKeys) == 0 {
		return c.checkOwnedCard()
	}
	return fmt.Errorf("%s: not together with switch: set them for that switch (antrail switch --settings)", strings.Join(c.ownSwitchKeys, ", "))
}

// Defaults is a configuration of defaults only. It is not complete.
func Defaults() *Config {
	c := &Config{}
	c.setDefaults()
	return c
}

func (c *Config) setDefaults() {
	if c.Kubernetes != nil {
		orDefault(&c.NodeName, os.Getenv("NODE_NAME"))
		c.Kubernetes.setDefaults(c)
	}
	orDefault(&c.NodeType, "k8sNode")
	orDefault(&c.Socket, DefaultSocket)
	mode := tables.Encap
	if c.External() {
		mode = tables.NoEncap
	}
	orDefault(&c.TrafficEncapMode, mode.String())
	orDefault(&c.ConnectionCache, new(true))
	orDefault(&c.Conntrack.Profile, "default")
	orDefault(&c.Offload, OffloadAuto)
	orDefault(&c.KeepAwake, KeepAwakeAuto)
	for _, s := range []*string{&c.Offload, &c.KeepAwake} {
		switch *s { // YAML reads on and off without quotes as booleans
		case "true":
			*s = "on"
		case "false":
			*s = "off"
		}
	}
	orDefault(&c.Workers, min(2, runtime.NumCPU()))
	orDefault(&c.AuditLog.Path, c.BesideSocket("networkpolicy.log"))
	c.AuditLog.setDefaults()
	c.Metrics.setDefaults()
	c.Log.setDefaults()
	c.Drops.setDefaults()
	c.Uplink.setDefaults()
	orDefault(&c.Masquerade, new(!c.External() && c.Encap() != tables.PolicyOnly))
	if !c.External() {
		orDefault(&c.Gateway.Name, DefaultGateway)
		orDefault(&c.Gateway.OFPort, tables.V115.GatewayNo())
		orDefault(&c.Tunnel.OFPort, tables.V115.TunnelNo())
		c.Tunnel.setDefaults()
	}
	if !c.waits() {
		c.Gateway.MTU = c.mtu()
	}
	for i := range c.Peers {
		if p := &c.Peers[i]; len(p.NodeIPs) == 0 {
			p.NodeIPs = []netip.Addr{p.Address}
		}
	}
	orDefault(&c.PodDriver, DriverAuto)
	for i := range c.Ports {
		orDefault(&c.Ports[i].Link, c.Ports[i].Name)
		orDefault(&c.Ports[i].Driver, c.PodDriver)
	}
}

// mtu is the MTU of gateway and pods. By default it is what the path to other Nodes leaves of
// 1500, or of the underlay link's MTU if that is less.
func (c *Config) mtu() int {
	return cmp.Or(c.Gateway.MTU, max(min(ethernetMTU, linkMTU(c.Tunnel.LocalAddress))-c.Overhead(), c.leastMTU()))
}

// leastMTU is the least MTU that the pods' address families allow.
func (c *Config) leastMTU() int {
	if slices.ContainsFunc(c.PodCIDRs, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		return minMTU6
	}
	return minMTU
}

func (c *Config) check() error {
	var f faults
	f.check(c.NodeName != "", "nodeName: missing")
	f.check(c.Flows != "" || c.Program != "" || c.FromObjects(), "flows, program, manifests, kubernetes: set one of them, as the source of entries or objects")
	c.checkProgram(&f)
	c.checkUplink(&f)
	f.check(c.Manifests == "" || !c.fromFiles(), "manifests: not together with flows, groups and meters")
	if c.Kubernetes != nil {
		c.Kubernetes.check(c, &f)
	}
	f.check(c.Workers >= 1 && c.Workers <= 64, "workers: %d is not between 1 and 64", c.Workers)
	f.check(KnownDriver(c.PodDriver), "podDriver: %q is none of auto, afxdp and afpacket", c.PodDriver)
	f.check(local.KnownOffload(c.Offload), "offload: %q is neither auto nor off", c.Offload)
	f.check(KnownKeepAwake(c.KeepAwake), "keepAwake: %q is none of auto, on and off", c.KeepAwake)
	c.AFXDP.Check(f.check)
	c.Conntrack.Check(f.check)
	c.checkType(&f)
	if !c.External() && !c.waits() {
		f.checkFamilies("podCIDRs", c.PodCIDRs)
		c.checkNodePorts(&f)
	}
	c.CNI.check(c, &f)
	c.AuditLog.check(&f)
	c.Metrics.check(&f)
	c.Page.check(&f)
	c.Log.check(&f)
	c.Drops.check(&f)
	c.checkPeers(&f)
	c.checkEncap(&f)
	c.checkPorts(&f)
	return errors.Join(f...)
}

// External says whether the Node is a machine without pods.
func (c *Config) External() bool { return c.NodeType == "externalNode" }

// waits says whether facts from the API are still missing.
func (c *Config) waits() bool { return c.Kubernetes != nil && !c.learned && !c.External() }

func (c *Config) checkNodePorts(f *faults) {
	g := &c.Gateway
	f.check(g.MAC != MAC{}, "gateway.mac: missing")
	for i, a := range c.PodCIDRs {
		f.check(slices.ContainsFunc(g.Addresses, SameFamily(a)), "gateway.addresses: none is of the family of podCIDRs[%d], %v", i, a)
	}
	f.checkFamilies("gateway.addresses", g.Addresses)
	f.check(g.MTU >= c.leastMTU() && g.MTU <= maxMTU, "gateway.mtu: %d is not between %d and %d", g.MTU, c.leastMTU(), maxMTU)
	f.check(g.OFPort < 0xff00, "gateway.ofPort: %d is not between 1 and 65279", g.OFPort)
	c.Tunnel.check(f)
}

func (c *Config) checkPeers(f *faults) {
	local := c.Tunnel.LocalAddress
	for i, p := range c.Peers {
		who := fmt.Sprintf("peers[%d]", i)
		f.checkNodeAddress(who+".address", p.Address)
		f.check(p.Address.Is4() == local.Is4(), "%s.address: %v is not of the family of tunnel.localAddress, %v", who, p.Address, local)
		f.checkFamilies(who+".podCIDRs", p.PodCIDRs)
		f.check(len(p.Gateways) == len(p.PodCIDRs), "%s.gateways: there are %d for %d podCIDRs; want one each", who, len(p.Gateways), len(p.PodCIDRs))
		for j, g := range p.Gateways[:min(len(p.Gateways), len(p.PodCIDRs))] {
			f.check(p.PodCIDRs[j].Contains(g), "%s.gateways[%d]: %v is not in %v", who, j, g, p.PodCIDRs[j])
		}
	}
}

// checkPorts checks each port, and reports a name, number or link that two ports claim.
func (c *Config) checkPorts(f *faults) {
	names, numbers, links := map[string]string{}, map[uint32]string{}, map[string]string{}
	if !c.External() {
		names[c.Gateway.Name], names[c.Tunnel.Name], links[c.Gateway.Name] = "gateway", "tunnel", "gateway"
		numbers[c.Gateway.OFPort] = "gateway"
		claim(f, numbers, c.Tunnel.OFPort, "tunnel", "ofPort")
	}
	for i, p := range c.Ports {
		who := fmt.Sprintf("ports[%d]", i)
		f.check(p.Name != "", "%s.name: missing", who)
		c.checkOFPort(f, numbers, who, &p)
		c.checkPodPort(f, who, &p)
		f.check(KnownDriver(p.Driver) || p.Driver == DriverTap, "%s.driver: %q is none of auto, afxdp, afpacket and tap", who, p.Driver)
		claim(f, names, p.Name, who, "name")
		claim(f, links, p.Link, who, "link")
	}
}

// checkOFPort checks the number of a pod's port. With manifests the NodeConfig has it.
func (c *Config) checkOFPort(f *faults, taken map[uint32]string, who string, p *Port) {
	no := p.OFPort
	if p.Program == "" && (c.Manifests != "" || c.Kubernetes != nil && c.External()) {
		f.check(no == 0, "%s.ofPort: %d; leave it out: the NodeConfig has it", who, no)
		return
	}
	f.check(no > 0 && no < 0xff00, "%s.ofPort: %d is not between 1 and 65279", who, no)
	claim(f, taken, no, who, "ofPort")
}
