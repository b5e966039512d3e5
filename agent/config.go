package agent

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Names and numbers that an agent has when its configuration gives none: those
// of an Antrea Node.
const (
	DefaultSocket     = "/run/antrail/agent.sock"
	DefaultBridge     = "br-int"
	DefaultGateway    = "antrea-gw0"
	DefaultTunnel     = "antrea-tun0"
	DefaultTunnelPort = 1
	DefaultGatewayNo  = 2
	DefaultMTU        = 1450 // 1500 less what Geneve over IPv4 adds

	maxMTU = 3822 // what a frame's buffer holds (ports/afxdp)
)

// Config is the agent's configuration file (YAML). A key that is not listed
// here is an error that names it. Paths of files are relative to the
// configuration file.
type Config struct {
	// NodeName is shown in logs, metrics and `antrail lab status`.
	NodeName string `json:"nodeName"`
	// Socket is the unix socket of the API; mode 0600.
	Socket string `json:"socket,omitempty"`
	// Bridge is the switch's name in dumps.
	Bridge  string  `json:"bridge,omitempty"`
	Gateway Gateway `json:"gateway"`
	Tunnel  Tunnel  `json:"tunnel"`
	// PodCIDRs are this Node's pod ranges.
	PodCIDRs []netip.Prefix `json:"podCIDRs"`
	// Peers are the other Nodes: the only ones packets are taken from.
	Peers []Peer `json:"peers,omitempty"`
	// Flows, Groups and Meters are the files of the pipeline, in the text form
	// of ovs-ofctl; groups and meters may be left out.
	Flows  string `json:"flows,omitempty"`
	Groups string `json:"groups,omitempty"`
	Meters string `json:"meters,omitempty"`
	// Manifests is a file or directory of Kubernetes and Antrea objects, in
	// place of Flows. It is watched.
	Manifests string `json:"manifests,omitempty"`
	// Ports are the pods' links. With Manifests, the NodeConfig says which ports
	// there are and gives their numbers; a port that is not listed here is on the
	// link of its name.
	Ports []Port `json:"ports,omitempty"`
	// Workers is how many threads poll the ports; 1 when not given.
	Workers int `json:"workers,omitempty"`
	// CTTimeouts are the connection timeouts: "default" or "ovs".
	CTTimeouts string `json:"ctTimeouts,omitempty"`
	// Masquerade gives pod traffic that leaves the cluster the Node's address;
	// true when not given.
	Masquerade *bool `json:"masquerade,omitempty"`
}

// Gateway is the port to the Node itself: a tap that is the pods' router.
type Gateway struct {
	Name      string         `json:"name,omitempty"`
	OFPort    uint32         `json:"ofPort,omitempty"`
	MAC       MAC            `json:"mac"`
	Addresses []netip.Prefix `json:"addresses"`
	MTU       int            `json:"mtu,omitempty"`
	Driver    string         `json:"driver,omitempty"` // tap
}

// Tunnel is the port to the other Nodes. The VNI is 0 unless an entry sets
// tun_id.
type Tunnel struct {
	Name         string     `json:"name,omitempty"`
	OFPort       uint32     `json:"ofPort,omitempty"`
	Type         string     `json:"type,omitempty"` // geneve
	LocalAddress netip.Addr `json:"localAddress"`
}

// Peer is another Node.
type Peer struct {
	Name    string       `json:"name"`
	Address netip.Addr   `json:"address"`
	PodCIDR netip.Prefix `json:"podCIDR"`
	Gateway netip.Addr   `json:"gateway"`
}

// Port is a pod's port: its name and number in the pipeline, and the link on
// the Node that it is. The link may be away; the port comes when it does.
type Port struct {
	Name   string `json:"name"`
	OFPort uint32 `json:"ofPort,omitempty"`
	Link   string `json:"link,omitempty"`   // Name when not given
	Driver string `json:"driver,omitempty"` // auto or afxdp
}

// MAC is an Ethernet address in its text form aa:bb:cc:dd:ee:ff.
type MAC [6]byte

// String is the text form.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// MarshalText is the text form.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the text form of a six-byte address.
func (m *MAC) UnmarshalText(text []byte) error {
	a, err := net.ParseMAC(string(text))
	if err != nil {
		return err
	}
	if len(a) != len(m) {
		return fmt.Errorf("%s is no Ethernet address", text)
	}
	copy(m[:], a)
	return nil
}

// LoadConfig reads and checks a configuration file. Errors name the file and
// the key.
func LoadConfig(path string) (*Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := ParseConfig(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, f := range []*string{&c.Flows, &c.Groups, &c.Meters, &c.Manifests} {
		if *f != "" && !filepath.IsAbs(*f) {
			*f = filepath.Join(filepath.Dir(path), *f)
		}
	}
	return c, nil
}

// ParseConfig reads a configuration, fills in defaults and checks it. All
// faults are returned together.
func ParseConfig(text []byte) (*Config, error) {
	c := &Config{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, err
	}
	c.setDefaults()
	return c, c.check()
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (c *Config) setDefaults() {
	orDefault(&c.Socket, DefaultSocket)
	orDefault(&c.Bridge, DefaultBridge)
	orDefault(&c.Workers, 1)
	orDefault(&c.CTTimeouts, "default")
	orDefault(&c.Gateway.Name, DefaultGateway)
	orDefault(&c.Gateway.OFPort, DefaultGatewayNo)
	orDefault(&c.Gateway.MTU, DefaultMTU)
	orDefault(&c.Gateway.Driver, "tap")
	orDefault(&c.Tunnel.Name, DefaultTunnel)
	orDefault(&c.Tunnel.OFPort, DefaultTunnelPort)
	orDefault(&c.Tunnel.Type, "geneve")
	if c.Masquerade == nil {
		yes := true
		c.Masquerade = &yes
	}
	for i := range c.Ports {
		orDefault(&c.Ports[i].Link, c.Ports[i].Name)
		orDefault(&c.Ports[i].Driver, "auto")
	}
}

// faults collects what is wrong with a configuration.
type faults []error

func (f *faults) check(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

func (c *Config) check() error {
	var f faults
	f.check(c.NodeName != "", "nodeName: missing")
	f.check(c.Flows != "" || c.Manifests != "", "flows: missing, and manifests too")
	f.check(c.Manifests == "" || c.files() == (Files{}), "manifests: not together with flows, groups and meters")
	f.check(c.Workers >= 1 && c.Workers <= 64, "workers: %d is not between 1 and 64", c.Workers)
	f.check(c.CTTimeouts == "default" || c.CTTimeouts == "ovs", "ctTimeouts: %q is neither default nor ovs", c.CTTimeouts)
	f.check(len(c.PodCIDRs) > 0, "podCIDRs: missing")
	for i, p := range c.PodCIDRs {
		f.check(p.IsValid() && p.Addr().Is4(), "podCIDRs[%d]: %v is no IPv4 range", i, p)
	}
	c.checkNodePorts(&f)
	c.checkPeers(&f)
	c.checkPorts(&f)
	return errors.Join(f...)
}

func (c *Config) checkNodePorts(f *faults) {
	g, t := &c.Gateway, &c.Tunnel
	f.check(g.MAC != MAC{}, "gateway.mac: missing")
	f.check(len(g.Addresses) > 0, "gateway.addresses: missing")
	for i, a := range g.Addresses {
		f.check(a.IsValid() && a.Addr().Is4(), "gateway.addresses[%d]: %v is no IPv4 address with prefix length", i, a)
	}
	f.check(g.MTU >= 576 && g.MTU <= maxMTU, "gateway.mtu: %d is not between 576 and %d", g.MTU, maxMTU)
	f.check(g.OFPort < 0xff00, "gateway.ofPort: %d is not between 1 and 65279", g.OFPort)
	f.check(t.OFPort < 0xff00, "tunnel.ofPort: %d is not between 1 and 65279", t.OFPort)
	f.check(g.Driver == "tap", "gateway.driver: %q, but only tap is there", g.Driver)
	f.check(t.Type == "geneve", "tunnel.type: %q, but only geneve is there", t.Type)
	f.check(t.LocalAddress.Is4(), "tunnel.localAddress: %v is no IPv4 address", t.LocalAddress)
}

func (c *Config) checkPeers(f *faults) {
	for i, p := range c.Peers {
		f.check(p.Address.Is4(), "peers[%d].address: %v is no IPv4 address", i, p.Address)
		f.check(p.Gateway.Is4(), "peers[%d].gateway: %v is no IPv4 address", i, p.Gateway)
		f.check(p.PodCIDR.IsValid() && p.PodCIDR.Addr().Is4(), "peers[%d].podCIDR: %v is no IPv4 range", i, p.PodCIDR)
	}
}

// checkPorts also finds a name, number or link that two ports claim.
func (c *Config) checkPorts(f *faults) {
	names := map[string]string{c.Gateway.Name: "gateway", c.Tunnel.Name: "tunnel"}
	numbers := map[uint32]string{c.Gateway.OFPort: "gateway"}
	links := map[string]string{c.Gateway.Name: "gateway"}
	claim(f, numbers, c.Tunnel.OFPort, "tunnel", "ofPort")
	for i, p := range c.Ports {
		who := fmt.Sprintf("ports[%d]", i)
		f.check(p.Name != "", "%s.name: missing", who)
		c.checkOFPort(f, numbers, who, p.OFPort)
		f.check(p.Driver == "auto" || p.Driver == "afxdp", "%s.driver: %q is neither auto nor afxdp", who, p.Driver)
		claim(f, names, p.Name, who, "name")
		claim(f, links, p.Link, who, "link")
	}
}

// checkOFPort checks the number of a pod's port: only flow files need one.
func (c *Config) checkOFPort(f *faults, taken map[uint32]string, who string, no uint32) {
	if c.Manifests != "" {
		f.check(no == 0, "%s.ofPort: %d, but with manifests the NodeConfig gives it", who, no)
		return
	}
	f.check(no > 0 && no < 0xff00, "%s.ofPort: %d is not between 1 and 65279", who, no)
	claim(f, taken, no, who, "ofPort")
}

func claim[K comparable](f *faults, taken map[K]string, key K, who, what string) {
	f.check(taken[key] == "", "%s.%s: %v is taken by %s", who, what, key, taken[key])
	taken[key] = who
}
