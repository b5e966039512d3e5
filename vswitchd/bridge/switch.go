package bridge

// Switch is the switch that rows configure. The reconciler calls it from one goroutine. It writes
// the error of a call to the column error of the interface.
type Switch interface {
	// Facts are constant facts about the switch.
	Facts() Facts
	// AddBridge makes a bridge without ports, or changes one that exists since before a restart.
	AddBridge(Bridge) error
	// ChangeBridge changes a bridge's settings. Its name and datapath type stay.
	ChangeBridge(Bridge) error
	// RemoveBridge removes a bridge and all of its ports.
	RemoveBridge(name string) error
	// AddPort adds a port to a bridge under its number. The bridge's own port, which has the
	// bridge's name and the number LocalPort, comes first.
	AddPort(bridge string, p Port) error
	// ChangePort changes a port's settings. Its name, type and number stay.
	ChangePort(bridge string, p Port) error
	// RemovePort removes a port.
	RemovePort(bridge, name string) error
	// PortState is the state of a port that AddPort has added.
	PortState(bridge, name string) PortState
	// ControllerStates are the states of the connections to a bridge's controllers, by target.
	ControllerStates(bridge string) map[string]ControllerState
}

// Facts are facts about a switch in columns of Open_vSwitch, Bridge and Datapath.
type Facts struct {
	// Version is the column ovs_version. Clients compare it, so it has the form "3.1.0".
	Version string
	// SystemType and SystemVersion name the operating system; with "" the columns stay unchanged.
	SystemType, SystemVersion string
	// DatapathTypes and InterfaceTypes are the valid Bridge.datapath_type and Interface.type. "" is
	// valid, too, and means "system".
	DatapathTypes, InterfaceTypes []string
	// DatapathVersion is Bridge.datapath_version.
	DatapathVersion string
	// Capabilities is Datapath.capabilities, which ovn-controller reads.
	Capabilities map[string]string
}

// LocalPort is the number of a bridge's own port (OFPP_LOCAL of OpenFlow 1.0).
const LocalPort = 65534

// Bridge is a wanted bridge.
type Bridge struct {
	Name, DatapathType string
	// DatapathID is the bridge's datapath ID in OpenFlow.
	DatapathID uint64
	// MAC is the address of the bridge's own port.
	MAC string
	// FailMode is "secure" or "standalone".
	FailMode string
	// Protocols are the versions of OpenFlow, such as "OpenFlow13"; empty for the default.
	Protocols   []string
	Controllers []Controller
	OtherConfig map[string]string
	// FlowRestoreWait is set while a controller is installing entries: the switch must drop all
	// packets and keep all connections (Open_vSwitch.other_config).
	FlowRestoreWait bool
}

// Controller is a controller of a bridge.
type Controller struct {
	Target string // such as "tcp:127.0.0.1:6653"
	// InactivityProbe and MaxBackoff are in milliseconds; -1 is the default.
	InactivityProbe, MaxBackoff int64
	ConnectionMode              string
	OtherConfig                 map[string]string
}

// Port is a wanted port: one Interface of one Port.
type Port struct {
	// Name is Interface.name.
	Name string
	// Type is Interface.type, such as "geneve"; "" means "system".
	Type string
	// Number is the OpenFlow port number.
	Number uint16
	// MAC is the wanted MAC address; "" for any.
	MAC string
	// MTU is mtu_request; 0 for any.
	MTU     int
	Options map[string]string
	// Tag, Trunks and VLANMode are the columns of Port; Tag is -1 if it is empty.
	Tag      int
	Trunks   []int64
	VLANMode string
	// ExternalIDs and OtherConfig are Interface's.
	ExternalIDs, OtherConfig map[string]string
}

// PortState is the state of a port.
type PortState struct {
	MAC     string // "" if it is not known
	MTU     int    // 0 if it is not known
	IfIndex int    // of the kernel; 0 if it has none
	// AdminUp and LinkUp are admin_state and link_state.
	AdminUp, LinkUp bool
	// Speed is in bits per second; 0 if it is not known.
	Speed  int64
	Duplex string // "full", "half" or ""
	// LinkResets counts how often the link came or went.
	LinkResets int64
	// Statistics is the column of that name, with keys such as rx_packets.
	Statistics map[string]int64
	// Status is the column of that name, with keys such as driver_name.
	Status map[string]string
}

// ControllerState is the state of the connection to a controller.
type ControllerState struct {
	Connected bool
	Role      string // "master", "slave" or "other"; "" if it has none
	Status    map[string]string
}
