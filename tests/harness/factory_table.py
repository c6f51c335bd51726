"""The factories of OpenVINO's opsets: what each is called, which operation it creates, and its parameters.

Each opset has those of the one before it, and these. Without parameters, a factory takes the inputs of the operation
and then its attributes, as they are declared. Where OpenVINO's parameters differ, they are listed: one is the attribute
or the input of that name, else the next input that is left. ``name>attribute`` names another attribute, ``*name`` takes
any number of inputs, ``**name`` a dictionary of attributes. ``@`` marks what is written by hand, in
``ir_runtime.api.building.factories``, under the same name or the one that follows.
"""

__all__ = ["FACTORIES"]

FACTORIES = {
    1: """
        abs = Abs-1(node)
        absolute = Abs-1(node)
        acos = Acos-1(node)
        add = Add-1(left_node, right_node, auto_broadcast='NUMPY')
        asin = Asin-1(node)
        atan = Atan-1(node)
        avg_pool = AvgPool-1(data_batch, strides, pads_begin, pads_end, kernel_shape>kernel, exclude_pad, rounding_type='floor', auto_pad=None)
        batch_norm_inference = BatchNormInference-1(data, gamma, beta, mean, variance, epsilon)
        binary_convolution = BinaryConvolution-1(data, filters, strides, pads_begin, pads_end, dilations, mode, pad_value, auto_pad='EXPLICIT')
        broadcast = Broadcast-1(data, target_shape, axes_mapping=None, mode='NUMPY')
        ceil = Ceiling-1(node)
        ceiling = Ceiling-1(node)
        clamp = Clamp-1(data, min_value>min, max_value>max)
        concat = Concat-1(*nodes, axis)
        constant = @constant_1
        convert = Convert-1
        convert_like = ConvertLike-1
        convolution = Convolution-1(data, filters, strides, pads_begin, pads_end, dilations, auto_pad='EXPLICIT')
        convolution_backprop_data = ConvolutionBackpropData-1(data, filters, strides, output_shape=None, pads_begin=None, pads_end=None, dilations=None, auto_pad=None, output_padding=None)
        cos = Cos-1(node)
        cosh = Cosh-1(node)
        ctc_greedy_decoder = CTCGreedyDecoder-1(data, sequence_mask, merge_repeated>ctc_merge_repeated=True)
        deformable_convolution = DeformableConvolution-1(data, deformable_values, filters, strides, pads_begin, pads_end, dilations, auto_pad='EXPLICIT', group=1, deformable_group=1)
        deformable_psroi_pooling = DeformablePSROIPooling-1(feature_maps, coords, output_dim, spatial_scale, group_size=1, mode='bilinear_deformable', spatial_bins_x=1, spatial_bins_y=1, trans_std=1.0, part_size=1, offsets=None)
        depth_to_space = DepthToSpace-1(node, mode, block_size=1)
        detection_output = DetectionOutput-1(box_logits, class_preds, proposals, **attrs, aux_class_preds=None, aux_box_preds=None)
        divide = Divide-1(left_node, right_node, auto_broadcast='NUMPY')
        elu = Elu-1
        equal = Equal-1(left_node, right_node, auto_broadcast='NUMPY')
        erf = Erf-1(node)
        exp = Exp-1(node)
        fake_quantize = FakeQuantize-1(data, input_low, input_high, output_low, output_high, levels, auto_broadcast='NUMPY')
        floor = Floor-1(node)
        floor_mod = FloorMod-1(left_node, right_node, auto_broadcast='NUMPY')
        gather = Gather-1
        gather_tree = GatherTree-1(step_ids, parent_idx, max_seq_len, end_token)
        greater = Greater-1(left_node, right_node, auto_broadcast='NUMPY')
        greater_equal = GreaterEqual-1(left_node, right_node, auto_broadcast='NUMPY')
        grn = GRN-1
        group_convolution = GroupConvolution-1(data, filters, strides, pads_begin, pads_end, dilations, auto_pad='EXPLICIT')
        group_convolution_backprop_data = GroupConvolutionBackpropData-1(data, filters, strides, output_shape=None, pads_begin=None, pads_end=None, dilations=None, auto_pad='EXPLICIT', output_padding=None)
        hard_sigmoid = HardSigmoid-1
        interpolate = Interpolate-1(image, output_shape, **attrs)
        less = Less-1(left_node, right_node, auto_broadcast='NUMPY')
        less_equal = LessEqual-1(left_node, right_node, auto_broadcast='NUMPY')
        log = Log-1(node)
        logical_and = LogicalAnd-1(left_node, right_node, auto_broadcast='NUMPY')
        logical_not = LogicalNot-1(node)
        logical_or = LogicalOr-1(left_node, right_node, auto_broadcast='NUMPY')
        logical_xor = LogicalXor-1(left_node, right_node, auto_broadcast='NUMPY')
        lrn = LRN-1(data, axes, alpha=1, beta=0.5, bias=1, size=5)
        lstm_cell = LSTMCell-1(X, initial_hidden_state, initial_cell_state, W, R, B, hidden_size, activations=None, activations_alpha=None, activations_beta=None, clip=0.0)
        matmul = MatMul-1(data_a, data_b, transpose_a, transpose_b)
        max_pool = MaxPool-1(data, strides, pads_begin, pads_end, kernel_shape>kernel, rounding_type='floor', auto_pad=None)
        maximum = Maximum-1(left_node, right_node, auto_broadcast='NUMPY')
        minimum = Minimum-1(left_node, right_node, auto_broadcast='NUMPY')
        mod = Mod-1(left_node, right_node, auto_broadcast='NUMPY')
        multiply = Multiply-1(left_node, right_node, auto_broadcast='NUMPY')
        negative = Negative-1(node)
        non_max_suppression = NonMaxSuppression-1(boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None, box_encoding='corner', sort_result_descending=True)
        normalize_l2 = NormalizeL2-1
        not_equal = NotEqual-1(left_node, right_node, auto_broadcast='NUMPY')
        one_hot = OneHot-1
        pad = Pad-1(arg, pads_begin, pads_end, pad_mode, arg_pad_value=None)
        parameter = @
        power = Power-1(left_node, right_node, auto_broadcast='NUMPY')
        prelu = PReLU-1
        prior_box = PriorBox-1(layer_shape, image_shape, **attrs)
        prior_box_clustered = PriorBoxClustered-1(output_size, image_size, **attrs)
        proposal = Proposal-1(class_probs, bbox_deltas, image_shape, **attrs)
        psroi_pooling = PSROIPooling-1(input, coords, output_dim, group_size, spatial_scale, spatial_bins_x, spatial_bins_y, mode)
        range = Range-1
        reduce_logical_and = ReduceLogicalAnd-1(node, reduction_axes, keep_dims=False)
        reduce_logical_or = ReduceLogicalOr-1(node, reduction_axes, keep_dims=False)
        reduce_max = ReduceMax-1(node, reduction_axes, keep_dims=False)
        reduce_mean = ReduceMean-1(node, reduction_axes, keep_dims=False)
        reduce_min = ReduceMin-1(node, reduction_axes, keep_dims=False)
        reduce_prod = ReduceProd-1(node, reduction_axes, keep_dims=False)
        reduce_sum = ReduceSum-1(node, reduction_axes, keep_dims=False)
        region_yolo = RegionYolo-1(input, coords, classes, num, do_softmax, mask, axis, end_axis, anchors=None)
        relu = ReLU-1(node)
        reshape = Reshape-1(node, output_shape, special_zero)
        result = @
        reverse_sequence = ReverseSequence-1(input, seq_lengths, batch_axis, seq_axis)
        select = Select-1(cond, then_node, else_node, auto_broadcast='numpy')
        selu = Selu-1(data, alpha, lambda_value)
        shape_of = ShapeOf-1
        sigmoid = Sigmoid-1
        sign = Sign-1(node)
        sin = Sin-1(node)
        sinh = Sinh-1(node)
        softmax = SoftMax-1(data, axis)
        space_to_depth = SpaceToDepth-1(data, mode, block_size=1)
        split = Split-1
        sqrt = Sqrt-1(node)
        squared_difference = SquaredDifference-1(x1, x2, auto_broadcast='NUMPY')
        squeeze = Squeeze-1(data, axes)
        strided_slice = StridedSlice-1(data, begin, end, strides, begin_mask, end_mask, new_axis_mask=None, shrink_axis_mask=None, ellipsis_mask=None)
        subtract = Subtract-1(left_node, right_node, auto_broadcast='NUMPY')
        tan = Tan-1(node)
        tanh = Tanh-1(node)
        tensor_iterator = @TensorIterator
        tile = Tile-1
        topk = TopK-1(data, k, axis, mode, sort)
        transpose = Transpose-1(data, input_order)
        unsqueeze = Unsqueeze-1
        variadic_split = VariadicSplit-1
    """,
    2: """
        batch_to_space = BatchToSpace-2
        gelu = Gelu-2(node)
        mvn = MVN-1(data, across_channels=False, normalize_variance=False, eps=1e-09)
        reorg_yolo = ReorgYolo-1(input, stride)
        roi_pooling = @
        space_to_batch = SpaceToBatch-2
    """,
    3: """
        assign = Assign-3
        broadcast = Broadcast-3(data, target_shape, axes_mapping=None, broadcast_spec>mode='NUMPY')
        bucketize = Bucketize-3(data, buckets, output_type='i64', with_right_bound=True)
        cum_sum = CumSum-3(arg, axis, exclusive=False, reverse=False)
        cumsum = CumSum-3(arg, axis, exclusive=False, reverse=False)
        embedding_bag_offsets_sum = EmbeddingBagOffsetsSum-3
        embedding_bag_packed_sum = EmbeddingBagPackedSum-3
        embedding_segments_sum = EmbeddingSegmentsSum-3(emb_table, indices, segment_ids, num_segments=None, default_index=None, per_sample_weights=None)
        extract_image_patches = ExtractImagePatches-3(image, sizes, strides, rates, auto_pad)
        gru_cell = GRUCell-3(X, initial_hidden_state, W, R, B, hidden_size, activations=None, activations_alpha=None, activations_beta=None, clip=0.0, linear_before_reset=False)
        non_max_suppression = NonMaxSuppression-3(boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None, box_encoding='corner', sort_result_descending=True, output_type='i64')
        non_zero = NonZero-3(data, output_type='i64')
        read_value = ReadValue-3(init_value, variable_id)
        rnn_cell = RNNCell-1(X, initial_hidden_state, W, R, B, hidden_size, activations, activations_alpha, activations_beta, clip=0.0)
        roi_align = ROIAlign-3
        scatter_elements_update = ScatterElementsUpdate-3
        scatter_update = ScatterUpdate-3
        shape_of = ShapeOf-3(data, output_type='i64')
        shuffle_channels = ShuffleChannels-1(data, axis, group)
        topk = TopK-3(data, k, axis, mode, sort, index_element_type='i32')
    """,
    4: """
        acosh = Acosh-4(node)
        asinh = Asinh-4(node)
        atanh = Atanh-4(node)
        ctc_loss = CTCLoss-4
        hswish = HSwish-4
        lstm_cell = LSTMCell-4(X, initial_hidden_state, initial_cell_state, W, R, B, hidden_size, activations=None, activations_alpha=None, activations_beta=None, clip=0.0)
        mish = Mish-4
        non_max_suppression = NonMaxSuppression-4(boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None, box_encoding='corner', sort_result_descending=True, output_type='i64')
        proposal = Proposal-4(class_probs, bbox_deltas, image_shape, **attrs)
        reduce_l1 = ReduceL1-4(node, reduction_axes, keep_dims=False)
        reduce_l2 = ReduceL2-4(node, reduction_axes, keep_dims=False)
        scatter_nd_update = ScatterNDUpdate-4
        softplus = SoftPlus-4
        swish = Swish-4
    """,
    5: """
        batch_norm_inference = BatchNormInference-5
        gather_nd = GatherND-5
        gru_sequence = GRUSequence-5(X, initial_hidden_state, sequence_lengths, W, R, B, hidden_size, direction, activations=None, activations_alpha=None, activations_beta=None, clip=0.0, linear_before_reset=False)
        hsigmoid = HSigmoid-5
        log_softmax = LogSoftmax-5(data, axis)
        loop = @Loop
        lstm_sequence = LSTMSequence-5(X, initial_hidden_state, initial_cell_state, sequence_lengths, W, R, B, hidden_size, direction, activations=None, activations_alpha=None, activations_beta=None, clip=0.0)
        non_max_suppression = NonMaxSuppression-5(boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None, soft_nms_sigma=None, box_encoding='corner', sort_result_descending=True, output_type='i64')
        rnn_sequence = RNNSequence-5(X, initial_hidden_state, sequence_lengths, W, R, B, hidden_size, direction, activations=None, activations_alpha=None, activations_beta=None, clip=0.0)
        round = Round-5
    """,
    6: """
        assign = @Assign
        ctc_greedy_decoder_seq_len = CTCGreedyDecoderSeqLen-6(data, sequence_length, blank_index=None, merge_repeated=True, classes_index_type='i32', sequence_length_type='i32')
        gather_elements = GatherElements-6(data, indices, axis=0)
        mvn = MVN-6
        read_value = @
    """,
    7: """
        dft = DFT-7
        einsum = Einsum-7(*inputs, equation)
        gather = Gather-7
        gelu = Gelu-7(data, approximation_mode)
        idft = IDFT-7
        roll = Roll-7
    """,
    8: """
        adaptive_avg_pool = AdaptiveAvgPool-8(data, output_shape)
        adaptive_max_pool = AdaptiveMaxPool-8(data, output_shape, index_element_type='i64')
        deformable_convolution = DeformableConvolution-8(data, offsets, filters, strides, pads_begin, pads_end, dilations, mask=None, auto_pad='EXPLICIT', group=1, deformable_group=1, bilinear_interpolation_pad=False)
        detection_output = DetectionOutput-8(box_logits, class_preds, proposals, **attrs, aux_class_preds=None, aux_box_preds=None)
        gather = Gather-8
        gather_nd = GatherND-8
        i420_to_bgr = I420toBGR-8(arg, arg_u=None, arg_v=None)
        i420_to_rgb = I420toRGB-8(arg, arg_u=None, arg_v=None)
        if_op = @If
        matrix_nms = MatrixNms-8(boxes, scores, sort_result_type='none', sort_result_across_batch=False, output_type='i64', score_threshold=0.0, nms_top_k=-1, keep_top_k=-1, background_class=-1, decay_function='linear', gaussian_sigma=2.0, post_threshold=0.0, normalized=True)
        max_pool = MaxPool-8(data, strides, dilations, pads_begin, pads_end, kernel_shape>kernel, rounding_type='floor', auto_pad=None, index_element_type='i64', axis=0)
        multiclass_nms = MulticlassNms-8(boxes, scores, sort_result_type='none', sort_result_across_batch=False, output_type='i64', iou_threshold=0.0, score_threshold=0.0, nms_top_k=-1, keep_top_k=-1, background_class=-1, nms_eta=1.0, normalized=True)
        nv12_to_bgr = NV12toBGR-8(arg, arg_uv=None)
        nv12_to_rgb = NV12toRGB-8(arg, arg_uv=None)
        prior_box = PriorBox-8(layer_shape, image_shape, **attrs)
        random_uniform = RandomUniform-8(output_shape, min_val, max_val, output_type, global_seed=0, op_seed=0, alignment='tensorflow')
        slice = Slice-8
        softmax = SoftMax-8(data, axis)
    """,
    9: """
        eye = Eye-9(num_rows, num_columns, diagonal_index, output_type, batch_shape=None)
        generate_proposals = GenerateProposals-9(im_info, anchors, deltas, scores, min_size, nms_threshold, pre_nms_count, post_nms_count, normalized=True, nms_eta=1.0, roi_num_type='i64')
        grid_sample = GridSample-9(data, grid, **attributes)
        irdft = IRDFT-9
        multiclass_nms = MulticlassNms-9(boxes, scores, roisnum=None, sort_result_type='none', sort_result_across_batch=False, output_type='i64', iou_threshold=0.0, score_threshold=0.0, nms_top_k=-1, keep_top_k=-1, background_class=-1, nms_eta=1.0, normalized=True)
        non_max_suppression = NonMaxSuppression-9(boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None, soft_nms_sigma=None, box_encoding='corner', sort_result_descending=True, output_type='i64')
        rdft = RDFT-9
        roi_align = ROIAlign-9
        softsign = SoftSign-9(node)
    """,
    10: """
        interpolate = Interpolate-4(image, output_shape, scales, mode, shape_calculation_mode, pads_begin=None, pads_end=None, coordinate_transformation_mode='half_pixel', nearest_mode='round_prefer_floor', antialias=False, cube_coeff=-0.75, axes=None)
        is_finite = IsFinite-10
        is_inf = IsInf-10(data, **attributes=None)
        is_nan = IsNaN-10
        unique = Unique-10(data, axis=None, sorted=True, index_element_type='i64', count_element_type='i64')
    """,
    11: """
        interpolate = Interpolate-11(image, scales_or_sizes, mode, shape_calculation_mode, pads_begin=None, pads_end=None, coordinate_transformation_mode='half_pixel', nearest_mode='round_prefer_floor', antialias=False, cube_coeff=-0.75, axes=None)
        topk = TopK-11(data, k, axis, mode, sort, index_element_type='i32', stable=False)
    """,
    12: """
        group_normalization = GroupNormalization-12
        pad = Pad-12(arg, pads_begin, pads_end, pad_mode, arg_pad_value=None)
        range = Range-4
        scatter_elements_update = ScatterElementsUpdate-12(data, indices, updates, axis, reduction='None', use_init_val=True)
    """,
    13: """
        bitwise_and = BitwiseAnd-13(left_node, right_node, auto_broadcast='NUMPY')
        bitwise_not = BitwiseNot-13(node)
        bitwise_or = BitwiseOr-13(left_node, right_node, auto_broadcast='NUMPY')
        bitwise_xor = BitwiseXor-13(left_node, right_node, auto_broadcast='NUMPY')
        constant = @
        fake_convert = FakeConvert-13(data, scale, shift=None, destination_type='f8e4m3')
        fake_quantize = FakeQuantize-1(data, input_low, input_high, output_low, output_high, levels, auto_broadcast='NUMPY')
        multinomial = Multinomial-13(probs, num_samples, convert_type, with_replacement, log_probs, global_seed=0, op_seed=0)
        nms_rotated = NMSRotated-13(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, sort_result_descending=True, output_type='i64', clockwise=True)
        scaled_dot_product_attention = ScaledDotProductAttention-13(query, key, value, attention_mask=None, scale=None, causal=False)
    """,
    14: """
        avg_pool = AvgPool-14(data_batch, strides, pads_begin, pads_end, kernel_shape>kernel, exclude_pad, rounding_type='floor', auto_pad=None)
        convert_promote_types = ConvertPromoteTypes-14(left_node, right_node, promote_unsafe=False, pytorch_scalar_promotion=False, u64_integer_promotion_target='f32')
        inverse = Inverse-14
        max_pool = MaxPool-14(data, strides, dilations, pads_begin, pads_end, kernel_shape>kernel, rounding_type='floor', auto_pad=None, index_element_type='i64', axis=0)
    """,
    15: """
        bitwise_left_shift = BitwiseLeftShift-15(arg0, arg1, auto_broadcast='NUMPY')
        bitwise_right_shift = BitwiseRightShift-15(arg0, arg1, auto_broadcast='NUMPY')
        col2im = Col2Im-15(data, output_size, kernel_size, strides=None, dilations=None, pads_begin=None, pads_end=None)
        embedding_bag_offsets = EmbeddingBagOffsets-15
        embedding_bag_packed = EmbeddingBagPacked-15
        roi_align_rotated = ROIAlignRotated-15(data, rois, batch_indices, pooled_h, pooled_w, sampling_ratio, spatial_scale, clockwise_mode)
        scatter_nd_update = ScatterNDUpdate-15(data, indices, updates, reduction=None)
        search_sorted = SearchSorted-15(sorted_sequence, values, right_mode=False)
        slice_scatter = SliceScatter-15
        squeeze = Squeeze-15
        stft = STFT-15(data, window, frame_size, frame_step, transpose_frames)
        string_tensor_pack = StringTensorPack-15
        string_tensor_unpack = StringTensorUnpack-15
    """,
    16: """
        avg_pool = AvgPool-16(data_batch, strides, pads_begin, pads_end, kernel_shape>kernel, exclude_pad, rounding_type='floor', auto_pad=None, dilations=None)
        identity = Identity-16
        istft = ISTFT-16(data, window, frame_size, frame_step, center, normalized, signal_length=None)
        one_hot = OneHot-16(indices, depth, on_value, off_value, axis, negative_indices_mode=None)
        segment_max = SegmentMax-16(data, segment_ids, num_segments=None, fill_mode=None)
        sparse_fill_empty_rows = SparseFillEmptyRows-16
    """,
    17: """
        erfinv = ErfInv-17(node)
        grouped_matmul = GroupedMatMul-17
    """,
}
