include $(sort $(wildcard $(BR2_EXTERNAL_ARMLET_PATH)/package/*/*.mk))
