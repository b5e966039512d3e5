package bridge

// Switch is the switch that rows configure. The reconciler calls it from one goroutine. An
// error of a call is written to the column error of the interface that it was for.
type Switch interface {
	// Facts says what the switch is. It does not change.
	Facts() Facts
	// AddBridge makes a bridge without ports. The bridge may be there already, from before a
	// restart: then it is changed.
	AddBridge(Bridge) error
	// ChangeBridge gives a bridge other settings. Its name and datapath type stay.
	ChangeBridge(Bridge) error
	// RemoveBridge removes a bridge and all of its ports.
	RemoveBridge(name string) error
	// AddPort adds a port to a bridge under its number. The bridge's own port, which has the
	// bridge's name and the number LocalPort, comes first.
	AddPort(bridge string, p Port) error
	// ChangePort gives a port other settings. Its name, type and number stay.
	ChangePort(bridge string, p Port) error
	// RemovePort removes a port.
	RemovePort(bridge, name string) error
	// PortState says how a port is. It is called for ports that AddPort took.
	PortState(bridge, name string) PortState
	// ControllerStates says how the connections to a bridge's controllers are, by target.
	ControllerStates(bridge string) map[string]ControllerState
}

// Facts is what a switch is, as clients read it.
type Facts struct {
	// Version is the column ovs_version. Clients compare it, so it has the form "3.1.0".
	Version string
	// SystemType and SystemVersion name the operating system; "" leaves the columns as they
	// are.
	SystemType, SystemVersion string
	// DatapathTypes and InterfaceTypes are what Bridge.datapath_type and Interface.type may be,
	// beside "", which stands for "system".
	DatapathTypes, InterfaceTypes []string
	// DatapathVersion is Bridge.datapath_version.
	DatapathVersion string
	// Capabilities is Datapath.capabilities: what ovn-controller asks for.
	Capabilities map[string]string
}

// LocalPort is the number of a bridge's own port (OFPP_LOCAL of OpenFlow 1.0).
const LocalPort = 65534

// Bridge is a bridge as the switch has to make it.
type Bridge struct {
	Name, DatapathType string
	// DatapathID is the bridge's name in OpenFlow.
	DatapathID uint64
	// MAC is the address of the bridge's own port.
	MAC string
	// FailMode is "secure" or "standalone".
	FailMode string
	// Protocols are the versions of OpenFlow, as "OpenFlow13"; none stands for the default.
	Protocols   []string
	Controllers []Controller
	OtherConfig map[string]string
	// FlowRestoreWait says that a controller is still installing entries: no packet may be
	// forwarded and no connection forgotten (Open_vSwitch.other_config).
	FlowRestoreWait bool
}

// Controller is a controller that a bridge has to connect to or listen for.
type Controller struct {
	Target string // as "tcp:127.0.0.1:6653"
	// InactivityProbe and MaxBackoff are in milliseconds; -1 stands for the default.
	InactivityProbe, MaxBackoff int64
	ConnectionMode              string
	OtherConfig                 map[string]string
}

// Port is a port as the switch has to make it: one Interface of one Port.
type Port struct {
	// Name is Interface.name.
	Name string
	// Type is Interface.type, as "geneve"; "" stands for "system".
	Type string
	// Number is the OpenFlow port number.
	Number uint16
	// MAC is the address that the port is to have; "" leaves it as it is.
	MAC string
	// MTU is mtu_request; 0 leaves it as it is.
	MTU     int
	Options map[string]string
	// Tag, Trunks and VLANMode are the columns of Port; Tag is -1 if it is empty.
	Tag      int
	Trunks   []int64
	VLANMode string
	// ExternalIDs and OtherConfig are Interface's.
	ExternalIDs, OtherConfig map[string]string
}

// PortState is how a port is.
type PortState struct {
	MAC     string // "" if it is not known
	MTU     int    // 0 if it is not known
	IfIndex int    // of the kernel; 0 if it has none
	// AdminUp and LinkUp are admin_state and link_state.
	AdminUp, LinkUp bool
	// Speed is in bits per second; 0 if it is not known.
	Speed  int64
	Duplex string // "full", "half" or ""
	// LinkResets is how often the link came or went.
	LinkResets int64
	// Statistics is the column of that name, as rx_packets.
	Statistics map[string]int64
	// Status is the column of that name, as driver_name.
	Status map[string]string
}

// ControllerState is how the connection to a controller is.
type ControllerState struct {
	Connected bool
	Role      string // "master", "slave" or "other"; "" if it has none
	Status    map[string]string
}
