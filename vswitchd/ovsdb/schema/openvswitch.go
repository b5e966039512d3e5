package schema

// OpenVSwitch is the database Open_vSwitch.
func OpenVSwitch() *Database {
	return database("Open_vSwitch", "8.8.0",
		openVSwitchTable(), bridgeTable(), portTable(), interfaceTable(), flowTableTable(), qosTable(), queueTable(), mirrorTable(),
		netFlowTable(), sFlowTable(), ipfixTable(), flowSampleCollectorSetTable(), controllerTable(), managerTable(), datapathTable(), ctZoneTable(), ctTimeoutPolicyTable(), sslTable(), autoAttachTable(),
	)
}

// openVSwitchTable is the one row that says what the switch is and has.
func openVSwitchTable() *Table {
	return single(root(table("Open_vSwitch",
		mapping("datapaths", text, strong("Datapath")),
		many("bridges", strong("Bridge")),
		many("manager_options", strong("Manager")),
		maybe("ssl", strong("SSL")),
		words("other_config"),
		words("external_ids"),
		one("next_cfg", number),
		one("cur_cfg", number),
		ephemeral(words("statistics")),
		maybe("ovs_version", text),
		maybe("db_version", text),
		maybe("system_type", text),
		maybe("system_version", text),
		many("datapath_types", text),
		many("iface_types", text),
		one("dpdk_initialized", flag),
		maybe("dpdk_version", text),
	)))
}

// bridgeTable is a bridge.
func bridgeTable() *Table {
	return unique(table("Bridge",
		fixed(one("name", text)),
		one("datapath_type", text),
		one("datapath_version", text),
		ephemeral(maybe("datapath_id", text)),
		one("stp_enable", flag),
		one("rstp_enable", flag),
		one("mcast_snooping_enable", flag),
		many("ports", strong("Port")),
		many("mirrors", strong("Mirror")),
		maybe("netflow", strong("NetFlow")),
		maybe("sflow", strong("sFlow")),
		maybe("ipfix", strong("IPFIX")),
		many("controller", strong("Controller")),
		many("protocols", oneOf("OpenFlow10", "OpenFlow11", "OpenFlow12", "OpenFlow13", "OpenFlow14", "OpenFlow15")),
		maybe("fail_mode", oneOf("standalone", "secure")),
		ephemeral(words("status")),
		ephemeral(words("rstp_status")),
		words("other_config"),
		words("external_ids"),
		upTo(4096, "flood_vlans", between(0, 4095)),
		mapping("flow_tables", between(0, 254), strong("Flow_Table")),
		maybe("auto_attach", strong("AutoAttach")),
	), "name")
}

// portTable is a port: one interface, or a bond of several.
func portTable() *Table {
	return unique(table("Port",
		fixed(one("name", text)),
		some("interfaces", strong("Interface")),
		upTo(4096, "trunks", between(0, 4095)),
		upTo(4096, "cvlans", between(0, 4095)),
		maybe("tag", between(0, 4095)),
		maybe("vlan_mode", oneOf("trunk", "access", "native-tagged", "native-untagged", "dot1q-tunnel")),
		maybe("qos", strong("QoS")),
		maybe("mac", text),
		maybe("bond_mode", oneOf("balance-tcp", "balance-slb", "active-backup")),
		maybe("lacp", oneOf("active", "passive", "off")),
		one("bond_updelay", number),
		one("bond_downdelay", number),
		maybe("bond_active_slave", text),
		one("bond_fake_iface", flag),
		one("fake_bridge", flag),
		ephemeral(words("status")),
		ephemeral(words("rstp_status")),
		ephemeral(mapping("rstp_statistics", text, number)),
		ephemeral(mapping("statistics", text, number)),
		one("protected", flag),
		words("other_config"),
		words("external_ids"),
	), "name")
}

// interfaceTable is a network device, or a tunnel, of a port.
func interfaceTable() *Table {
	return unique(table("Interface",
		fixed(one("name", text)),
		one("type", text),
		words("options"),
		one("ingress_policing_rate", atLeast(0)),
		one("ingress_policing_burst", atLeast(0)),
		one("ingress_policing_kpkts_rate", atLeast(0)),
		one("ingress_policing_kpkts_burst", atLeast(0)),
		ephemeral(maybe("mac_in_use", text)),
		maybe("mac", text),
		ephemeral(maybe("ifindex", between(0, most32))),
		words("external_ids"),
		maybe("ofport", number),
		maybe("ofport_request", between(1, 65279)),
		words("bfd"),
		ephemeral(words("bfd_status")),
		maybe("cfm_mpid", number),
		ephemeral(many("cfm_remote_mpids", number)),
		maybe("cfm_flap_count", number),
		ephemeral(maybe("cfm_fault", flag)),
		ephemeral(many("cfm_fault_status", text)),
		ephemeral(maybe("cfm_remote_opstate", oneOf("up", "down"))),
		ephemeral(maybe("cfm_health", between(0, 100))),
		ephemeral(maybe("lacp_current", flag)),
		words("lldp"),
		words("other_config"),
		ephemeral(mapping("statistics", text, number)),
		ephemeral(words("status")),
		ephemeral(maybe("admin_state", oneOf("up", "down"))),
		ephemeral(maybe("link_state", oneOf("up", "down"))),
		ephemeral(maybe("link_resets", number)),
		ephemeral(maybe("link_speed", number)),
		ephemeral(maybe("duplex", oneOf("half", "full"))),
		ephemeral(maybe("mtu", number)),
		maybe("mtu_request", atLeast(1)),
		maybe("error", text),
	), "name")
}

// flowTableTable is the name and the limits of a table of flow entries.
func flowTableTable() *Table {
	return table("Flow_Table",
		maybe("name", text),
		maybe("flow_limit", atLeast(0)),
		maybe("overflow_policy", oneOf("refuse", "evict")),
		many("groups", text),
		upTo(4, "prefixes", text),
		words("external_ids"),
	)
}

// qosTable is how a port schedules.
func qosTable() *Table {
	return root(table("QoS",
		one("type", text),
		mapping("queues", between(0, most32), strong("Queue")),
		words("other_config"),
		words("external_ids"),
	))
}

// queueTable is a queue of a QoS.
func queueTable() *Table {
	return root(table("Queue",
		maybe("dscp", between(0, 63)),
		words("other_config"),
		words("external_ids"),
	))
}

// controllerTable is a controller of a bridge.
func controllerTable() *Table {
	return table("Controller",
		maybe("type", oneOf("primary", "service")),
		one("target", text),
		maybe("max_backoff", atLeast(1000)),
		maybe("inactivity_probe", number),
		maybe("connection_mode", oneOf("in-band", "out-of-band")),
		maybe("local_ip", text),
		maybe("local_netmask", text),
		maybe("local_gateway", text),
		maybe("enable_async_messages", flag),
		maybe("controller_queue_size", between(1, 512)),
		maybe("controller_rate_limit", atLeast(100)),
		maybe("controller_burst_limit", atLeast(25)),
		words("other_config"),
		words("external_ids"),
		ephemeral(one("is_connected", flag)),
		ephemeral(maybe("role", oneOf("other", "master", "slave"))),
		ephemeral(words("status")),
	)
}

// managerTable is a client that manages the database.
func managerTable() *Table {
	return unique(table("Manager",
		one("target", text),
		maybe("max_backoff", atLeast(1000)),
		maybe("inactivity_probe", number),
		maybe("connection_mode", oneOf("in-band", "out-of-band")),
		words("other_config"),
		words("external_ids"),
		ephemeral(one("is_connected", flag)),
		ephemeral(words("status")),
	), "target")
}

// datapathTable is what a datapath can do.
func datapathTable() *Table {
	return table("Datapath",
		one("datapath_version", text),
		mapping("ct_zones", between(0, 65535), strong("CT_Zone")),
		words("capabilities"),
		maybe("ct_zone_default_limit", between(0, most32)),
		words("external_ids"),
	)
}

// ctZoneTable is a zone of connection tracking.
func ctZoneTable() *Table {
	return table("CT_Zone",
		maybe("timeout_policy", strong("CT_Timeout_Policy")),
		maybe("limit", between(0, most32)),
		words("external_ids"),
	)
}

// ctTimeoutPolicyTable is timeouts of connections.
func ctTimeoutPolicyTable() *Table {
	return table("CT_Timeout_Policy",
		mapping("timeouts", oneOf("tcp_syn_sent", "tcp_syn_recv", "tcp_established", "tcp_fin_wait", "tcp_close_wait", "tcp_last_ack", "tcp_time_wait", "tcp_close", "tcp_syn_sent2", "tcp_retransmit", "tcp_unack", "udp_first", "udp_single", "udp_multiple", "icmp_first", "icmp_reply"), between(0, most32)),
		words("external_ids"),
	)
}

// sslTable is keys and certificates.
func sslTable() *Table {
	return single(table("SSL",
		one("private_key", text),
		one("certificate", text),
		one("ca_cert", text),
		one("bootstrap_ca_cert", flag),
		words("external_ids"),
	))
}

// autoAttachTable is mappings of IEEE 802.1Q.
func autoAttachTable() *Table {
	return table("AutoAttach",
		one("system_name", text),
		one("system_description", text),
		mapping("mappings", between(0, 16777215), between(0, 4095)),
	)
}
